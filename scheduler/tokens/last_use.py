"""Last use: written after the answer, at most once a minute for each token, and never waited for.

A write with each call would have all calls of a token wait for one row, and on SQLite for one another's files.
"""

from datetime import datetime, timedelta
from threading import Lock
from typing import Any

from django.db import DatabaseError, InterfaceError, connections, transaction
from django.db.models import Q

from scheduler.engine.base import Engine
from scheduler.engine.db.shared_time import shared_now
from scheduler.engine.db.transactions import has_one_writer, without_waiting
from scheduler.models import ApiToken
from scheduler.models.primary import locked

EVERY = timedelta(minutes=1)
AGAIN = timedelta(seconds=5)
"""When a write that was refused is tried again."""
MOST_TOKENS = 10_000

_lock = Lock()
_tried: dict[int, datetime] = {}
"""When this process last meant to write the use of a token, by the key of that."""
_waiting: set[int] = set()


def note_use(token: ApiToken, now: datetime) -> None:
    """Remember that a token was used, unless that has been written within the minute; asks no database."""
    with _lock:
        if _is_recent(token.last_used_at, now) or _is_recent(_tried.get(token.pk), now):
            return
        if len(_tried) >= MOST_TOKENS:
            _tried.clear()
        _tried[token.pk] = now
        _waiting.add(token.pk)


def write_uses(**sent: Any) -> None:
    """Write what was remembered; what the database does not take at once is left to a later call.

    A receiver of Django's `request_finished`: the answer has been sent by then, and its transaction is over.
    """
    if not _waiting:
        return
    with _lock:
        keys = sorted(_waiting)
        _waiting.clear()
    using = Engine().using
    try:
        with without_waiting(using), transaction.atomic(using=using):
            _write(using, keys)
    except (DatabaseError, InterfaceError):
        _try_again(keys)
    finally:
        if not connections[using].in_atomic_block:  # as in a test, which goes on with it
            connections[using].close_if_unusable_or_obsolete()


def _try_again(keys: list[int]) -> None:
    with _lock:
        for key in _tried.keys() & {*keys}:
            _tried[key] -= EVERY - AGAIN


def _write(using: str, keys: list[int]) -> None:
    now = shared_now(using)
    old = ApiToken.objects.using(using).filter(
        Q(last_used_at__isnull=True) | Q(last_used_at__lt=now - EVERY), pk__in=keys
    )
    if not has_one_writer(using):
        old = ApiToken.objects.using(using).filter(
            pk__in=list(locked(old, skip_locked=True).values_list("pk", flat=True))
        )
    old.update(last_used_at=now)


def _is_recent(at: datetime | None, now: datetime) -> bool:
    """Return whether it was within a minute. Calls that run side by side come with instants in any order."""
    return at is not None and abs(now - at) < EVERY
