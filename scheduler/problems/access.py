"""Access: who may see the details of health and the metrics."""

import hmac

from django.conf import settings
from django.db import DatabaseError
from django.http import HttpRequest

from scheduler.conf import conf
from scheduler.exceptions import ConfigurationError


def may_see(request: HttpRequest) -> bool:
    """Return whether a request holds SCHEDULER_HEALTH_TOKEN, is of staff, or DEBUG is on."""
    return holds_the_key(request) or is_staff(request)


def holds_the_key(request: HttpRequest) -> bool:
    """Return whether a request holds SCHEDULER_HEALTH_TOKEN, or DEBUG is on; asks no database."""
    return settings.DEBUG or _holds_the_token(request.headers.get("Authorization", ""))


def is_staff(request: HttpRequest) -> bool:
    """Return whether a request is of a member of the staff; not while the database of sessions is away."""
    try:
        user = getattr(request, "user", None)
        return all(getattr(user, right, False) for right in ("is_active", "is_staff"))
    except DatabaseError:
        return False


def _holds_the_token(given: str) -> bool:
    """Whether a header holds SCHEDULER_HEALTH_TOKEN, which clients write in UTF-8 or in Latin-1."""
    try:
        token = conf.HEALTH_TOKEN
    except ConfigurationError:  # `check` says so; a monitor gets its answer
        return False
    wanted = f"Bearer {token}"
    matches = [hmac.compare_digest(_as_sent(given), one) for one in (wanted.encode(), _as_sent(wanted))]
    return bool(token) and any(matches)


def _as_sent(header: str) -> bytes:
    """Return the bytes of a header: servers hand them on as Latin-1, whatever they are."""
    try:
        return header.encode("latin-1")
    except UnicodeEncodeError:
        return header.encode()
