"""Rights: which permission an operation takes, and who asks."""

from collections.abc import Callable
from enum import StrEnum
from functools import wraps
from typing import Any, TypeVar, cast

from django.http import HttpRequest

from scheduler.api.problem import ApiProblem
from scheduler.models import Job
from scheduler.tokens.holder import Holder

V = TypeVar("V", bound=Callable[..., Any])


class Right(StrEnum):
    """A permission of the app, by its codename."""

    VIEW = "view_job"
    VIEW_RUNS = "view_runlog"
    ADD = "add_job"
    CHANGE = "change_job"
    DELETE = "delete_job"
    RUN = "run_job"
    PAUSE = "pause_job"


def may(request: HttpRequest, right: Right) -> bool:
    """Return whether the caller has the permission."""
    return bool(asking(request).has_perm(f"{Job._meta.app_label}.{right}"))


def require(request: HttpRequest, right: Right) -> None:
    """Raise a problem with status 403 when the caller lacks the permission."""
    refuse_without(asking(request), right)


def refuse_without(who: Any, right: Right) -> None:
    """Raise a problem with status 403 when who asks lacks the permission."""
    permission = f"{Job._meta.app_label}.{right}"
    if who.has_perm(permission):
        return
    if isinstance(who, Holder) and not who.scope_allows(permission):
        raise ApiProblem("insufficient_scope", "This takes a token of the scope write.")
    raise ApiProblem("forbidden", f"This takes the permission {permission}.")


def needing(right: Right) -> Callable[[V], V]:
    """Have a view require a right before it does anything."""

    def decorate(view: V) -> V:
        @wraps(view)
        def checked(request: HttpRequest, *args: Any, **values: Any) -> Any:
            require(request, right)
            return view(request, *args, **values)

        return cast(V, checked)

    return decorate


def asking(request: HttpRequest) -> Any:
    """Return who asks: a user, or what else the authenticator gave, with `has_perm` and `get_username`."""
    return getattr(request, "auth", None) or request.user


def key_of(request: HttpRequest) -> str:
    """Return who asks, for a key of its own: names of tokens and users may be equal."""
    who = asking(request)
    return f"token {who.token.pk}" if isinstance(who, Holder) else f"user {who.pk}"


def actor_of(request: HttpRequest) -> str:
    """Return who asks, as runs and events tell it."""
    return str(asking(request).get_username())[:150]
