"""Issue: make tokens and revoke them."""

import hashlib
import secrets
from datetime import datetime
from typing import Any

from django.views.decorators.debug import sensitive_variables

from scheduler.arguments import checked_text, optional_instant
from scheduler.engine.base import Engine
from scheduler.engine.db.shared_time import shared_now
from scheduler.exceptions import InvalidOption
from scheduler.models import ApiToken, Scope
from scheduler.models.api_token import LONGEST_NAME

PREFIX = "sched_"
"""By which scanners, and people, know such a secret where it should not be."""
RANDOM_BYTES = 32
"""So many cannot be guessed: they need neither salt nor a slow hash."""


@sensitive_variables("secret")
def digest_of(secret: str) -> str:
    """Return the hash by which a token is found; none but the secret itself leads to it."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


@sensitive_variables("secret")
def create_token(
    name: str, *, scope: str = Scope.READ, user: Any = None, expires_at: datetime | None = None, actor: str = ""
) -> tuple[ApiToken, str]:
    """Make a token; returns its row and the secret, which is told once and stored nowhere.

    With a `user` it may do what that user may, within its scope; without one all that its scope allows. `expires_at`
    is aware; None: never. `actor` is who makes it. Raises InvalidOption.
    """
    now = shared_now(Engine().using)
    expires_at = optional_instant("expires_at", expires_at)
    if expires_at is not None and expires_at <= now:
        raise InvalidOption(f"expires_at is {expires_at:%Y-%m-%d %H:%M} UTC; it must be in the future.")
    if scope not in Scope.values:
        raise InvalidOption(f"scope is {scope!r}; it must be one of {', '.join(Scope.values)}.")
    secret = PREFIX + secrets.token_urlsafe(RANDOM_BYTES)
    token = ApiToken(
        name=checked_token_name(name),
        digest=digest_of(secret),
        scope=scope,
        user_key="" if user is None else str(user.pk),
        created_at=now,
        created_by=checked_text("actor", actor)[:150],
        expires_at=expires_at,
    )
    token.save(force_insert=True)
    return token, secret


def revoke_token(token: ApiToken) -> bool:
    """Have a token open nothing from now on; False when it was revoked before."""
    now = shared_now(Engine().using)
    revoked = ApiToken.objects.filter(pk=token.pk, revoked_at__isnull=True).update(revoked_at=now)
    token.refresh_from_db()
    return bool(revoked)


def checked_token_name(name: object) -> str:
    """Return the name of a token: printable text without blank ends. Raises InvalidOption."""
    text = checked_text("name", name, longest=LONGEST_NAME)
    if not text.strip() or text != text.strip() or not text.isprintable():
        raise InvalidOption(f"name is {text!r}; it must be printable text without blank ends.")
    return text
