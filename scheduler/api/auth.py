"""Authentication: a bearer token of the Authorization header, else Django's session with its CSRF token.

A request that has an Authorization header is not asked for a session, so no browser and no page of another origin lends
one to it. A token anywhere else, as in the query, is not looked at.
"""

from collections.abc import Sequence
from typing import Any

from django.apps import apps
from django.core.signals import request_finished
from django.http import HttpRequest
from django.views.decorators.debug import sensitive_variables
from ninja.security import APIKeyCookie, HttpBearer
from ninja.security.session import SessionAuth
from ninja.utils import check_csrf

from scheduler.api.problem import ApiProblem
from scheduler.api.rights import Right, refuse_without
from scheduler.tokens.holder import Holder, holder_of
from scheduler.tokens.last_use import write_uses

HEADER = "Authorization"


class TokenAuth(HttpBearer):
    """A bearer token of this app."""

    openapi_description = "A token of `manage.py scheduler_token create`, or of the admin."

    def __init__(self, right: Right | None = None) -> None:
        super().__init__()
        self._right = right
        """What the caller must be allowed, asked before anything of the request is looked at."""

    @sensitive_variables()
    def __call__(self, request: HttpRequest) -> Holder | None:
        """Return who holds the token; None without the header. Django-ninja would log a header of another scheme."""
        if HEADER not in request.headers:
            return None
        scheme, _, secret = request.headers[HEADER].strip().partition(" ")
        if scheme.lower() != self.openapi_scheme:
            raise ApiProblem("invalid_token", "The Authorization header must be: Bearer, a blank and the token.")
        holder = self.authenticate(request, secret.strip())
        if self._right is not None:
            refuse_without(holder, self._right)
        return holder

    @sensitive_variables()
    def authenticate(self, request: HttpRequest, token: str) -> Holder:
        """Return who holds the token. For the rest of the request its user is the user of the request, too."""
        holder = holder_of(token)
        if holder is None:
            raise ApiProblem("invalid_token", "The token is unknown, revoked or expired, or its user is not active.")
        request.user = _user_of(holder)
        return holder


class BrowserAuth(APIKeyCookie):
    """Django's session, with its CSRF token for what changes anything."""

    param_name = SessionAuth.param_name
    openapi_description = "The session of a user who has signed in; writing takes `X-CSRFToken`, too."

    def __init__(self, right: Right | None = None) -> None:
        super().__init__()
        self._right = right

    def __call__(self, request: HttpRequest) -> Any:
        """Return the user who has signed in; None without one, or with an Authorization header."""
        user: Any = None if HEADER in request.headers else getattr(request, "user", None)
        if user is None or not user.is_authenticated:
            return None
        if check_csrf(request) is not None:
            raise ApiProblem("csrf_failed", "The CSRF token is missing or wrong: send it as X-CSRFToken.")
        if self._right is not None:
            refuse_without(user, self._right)
        return user

    def authenticate(self, request: HttpRequest, key: str | None) -> Any:
        """Never asked."""
        raise NotImplementedError


def _user_of(holder: Holder) -> Any:
    if holder.user is not None or not apps.is_installed("django.contrib.auth"):
        return holder.user
    from django.contrib.auth.models import AnonymousUser

    return AnonymousUser()


def authenticators(right: Right | None = None) -> Sequence[Any]:
    """Return the authenticators, asked in turn; with a right, they refuse a caller who lacks it."""
    return TokenAuth(right), BrowserAuth(right)


AUTHENTICATORS = authenticators()
request_finished.connect(write_uses, dispatch_uid="scheduler.api.auth")
