"""Holder: the caller behind a token, and its permissions."""

from dataclasses import dataclass
from typing import Any

from django.apps import apps
from django.views.decorators.debug import sensitive_variables

from scheduler.engine.base import Engine
from scheduler.engine.db.shared_time import shared_now
from scheduler.models import ApiToken
from scheduler.tokens.issue import digest_of
from scheduler.tokens.last_use import note_use

LONGEST_SECRET = 200
READS = "view_"
"""How the names of permissions begin that change nothing."""


@dataclass(frozen=True, slots=True)
class Holder:
    """A token and its user, asked as a user of Django is asked."""

    token: ApiToken
    user: Any = None

    def has_perm(self, permission: str) -> bool:
        """Return whether the scope of the token allows it, and its user may do so; without one the scope decides, for
        permissions of this app."""
        if not self.scope_allows(permission):
            return False
        if self.user is None:
            return permission.startswith(f"{ApiToken._meta.app_label}.")
        return bool(self.user.has_perm(permission))

    def scope_allows(self, permission: str) -> bool:
        """Return whether the scope of the token allows it."""
        return self.token.writes or permission.partition(".")[2].startswith(READS)

    def get_username(self) -> str:
        """Return who acts, as runs and events tell it: the token is named, for one person may have several."""
        name = f"token {self.token.name}"
        return name if self.user is None else f"{self.user.get_username()} ({name})"


@sensitive_variables("secret")
def holder_of(secret: str) -> Holder | None:
    """Return who holds the token with this secret; None when there is none, it is over, or its user is gone or off."""
    if not 0 < len(secret) <= LONGEST_SECRET:
        return None
    token = ApiToken.objects.filter(digest=digest_of(secret)).first()
    if token is None or token.revoked_at is not None:
        return None
    now = shared_now(Engine().using)
    if not token.is_live(now):
        return None
    user = user_of(token)
    if token.user_key and user is None:
        return None
    note_use(token, now)
    return Holder(token, user)


def user_of(token: ApiToken) -> Any:
    """Return the user of a token: None where it has none, or that is gone or not active."""
    return users_of([token]).get(token.user_key)


def users_of(tokens: list[ApiToken]) -> dict[str, Any]:
    """Return the active users of some tokens, by their keys as text; one query."""
    keys = {token.user_key for token in tokens if token.user_key}
    if not keys or not apps.is_installed("django.contrib.auth"):
        return {}
    from django.contrib.auth import get_user_model
    from django.core.exceptions import ValidationError

    users: Any = get_user_model()._default_manager
    key = users.model._meta.pk
    found = []
    for text in keys:
        try:
            found.append(key.to_python(text))
        except ValidationError:  # of another model of users than the project has by now
            continue
    return {str(user.pk): user for user in users.filter(pk__in=found) if user.is_active}
