"""Keyed requests: a request with a key is carried out once, however often it is sent, and by however many at a time.

Its row is written in the transaction of what it makes. Of equal requests that go on together the second waits for the
lock of the job, and then finds the row; where it has not waited, the unique key refuses its own row, and with it all
that it wrote.
"""

import hashlib
import json
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import IntegrityError

from scheduler.engine.base import Engine
from scheduler.engine.db.shared_time import shared_now
from scheduler.exceptions import Refused
from scheduler.models.idempotency_key import IdempotencyKey

KEPT = timedelta(hours=24)
"""How long a key is known."""
FORGOTTEN_AT_ONCE = 1000


class KeyTaken(Exception):
    """Another request with the key was faster: what this one wrote is undone."""


@dataclass(frozen=True, slots=True)
class KeyedRequest:
    """A request with a key, by the hashes of both."""

    digest: str
    request: str

    @classmethod
    def of(cls, key: str, caller: str, request: Any) -> "KeyedRequest":
        """Return a request of a caller; `request` is JSON, and equal for equal requests."""
        return cls(_hash([caller, key]), _hash(request))

    def before(self) -> IdempotencyKey | None:
        """Return what it made when it was sent before, None when it was not.

        Raises Refused with code `idempotency_key_reused` when the key was sent with another request.
        """
        rows = IdempotencyKey.objects.using(Engine().using)
        found = rows.known(_kept_since(shared_now(Engine().using))).filter(digest=self.digest).first()
        if found is not None and found.request != self.request:
            text = "This Idempotency-Key was sent with another request; use a new one for each request."
            raise Refused(text, code="idempotency_key_reused")
        return found

    def remember(self, made: int, *, created: bool = True) -> None:
        """Note what it made, in the transaction that makes it; raises KeyTaken."""
        using = Engine().using
        now, rows = shared_now(using), IdempotencyKey.objects.using(using)
        rows.filter(digest=self.digest, at__lte=_kept_since(now)).delete()
        try:
            rows.create(digest=self.digest, request=self.request, made=made, created=created, at=now)
        except IntegrityError as error:
            raise KeyTaken from error

    def of_the_faster(self) -> IdempotencyKey:
        """Return what the request made that was faster."""
        if (found := self.before()) is None:
            raise Refused("Another request with this Idempotency-Key goes on; try again.", code="in_progress")
        return found


def forget_keys(using: str, now: datetime) -> int:
    """Remove the keys that are not known any more; returns how many."""
    rows = IdempotencyKey.objects.using(using)
    old = list(rows.filter(at__lte=_kept_since(now)).values_list("pk", flat=True)[:FORGOTTEN_AT_ONCE])
    return rows.filter(pk__in=old).delete()[0] if old else 0


def _kept_since(now: datetime) -> datetime:
    return now - KEPT


def _hash(value: Any) -> str:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), default=str)
    return hashlib.sha256(text.encode()).hexdigest()
