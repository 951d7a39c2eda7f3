"""Keyed requests: a request with a key is carried out once, however often it is sent, and by however many at a time.

Its row is written when the request begins, in a transaction of its own, so that another request with the key need not
wait to be told what goes on. In the transaction of what the request makes, the row says so: only while it is still that
of this request, else all is undone.
"""

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, TypeVar

from django.db import DatabaseError, IntegrityError

from scheduler.engine.base import Engine
from scheduler.engine.db.shared_time import shared_now
from scheduler.engine.db.transactions import write_transaction
from scheduler.exceptions import Refused
from scheduler.models.idempotency_key import GOES_ON, IdempotencyKey

KEPT = timedelta(hours=24)
"""How long a key is known."""
LONGEST = timedelta(minutes=1)
"""How long a request goes on at most: after that its process is taken for dead, and the next request begins."""
FORGOTTEN_AT_ONCE = 1000
REUSED_TEXT = "This Idempotency-Key was sent with another request; use a new one for each request."
GOES_ON_TEXT = "The same request goes on; try again."
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class KeyedRequest:
    """A request with a key, by the hashes of both."""

    digest: str
    request: str

    @classmethod
    def of(cls, key: str, caller: str, request: Any) -> "KeyedRequest":
        """Return a request of a caller; `request` is JSON, and equal for equal requests."""
        return cls(_hash([caller, key]), _hash(request))

    def once(
        self,
        make: Callable[["Begun"], T],
        made_before: Callable[[IdempotencyKey], T],
        *,
        longest: timedelta = LONGEST,
    ) -> T:
        """Carry out the request, or return what it made when it was sent before.

        `make` calls `remember` in the transaction that makes something. When it raises, the key is as good as new.
        After `longest` the next request begins in place of one that goes on. Raises Refused with code
        `idempotency_key_reused` when the key was sent with another request, `in_progress` while the same one goes on.
        """
        found = self._begin(shared_now(Engine().using), longest)
        if isinstance(found, IdempotencyKey):
            return made_before(found)
        try:
            return make(found)
        except BaseException:
            found.forget()
            raise

    def _begin(self, now: datetime, longest: timedelta) -> "IdempotencyKey | Begun":
        """Return what the request made before, or the note that it goes on from now."""
        rows = IdempotencyKey.objects.using(Engine().using)
        if (found := rows.filter(digest=self.digest).first()) is None:
            try:
                with write_transaction(rows.db):
                    rows.create(digest=self.digest, request=self.request, made=GOES_ON, at=now)
                return Begun(self, now)
            except IntegrityError:
                found = rows.filter(digest=self.digest).first()
        return self._in_view_of(found, now, longest)

    def _in_view_of(self, found: IdempotencyKey | None, now: datetime, longest: timedelta) -> "IdempotencyKey | Begun":
        """Return what `_begin` does where there is a row, or there was one just now."""
        if found is None:
            raise Refused(GOES_ON_TEXT, code="in_progress")
        if found.at > _kept_since(now):
            if found.request != self.request:
                raise Refused(REUSED_TEXT, code="idempotency_key_reused")
            if found.made != GOES_ON:
                return found
        begun = Begun(self, now)
        if (found.made == GOES_ON and found.at > now - longest) or not begun.take_over(found):
            raise Refused(GOES_ON_TEXT, code="in_progress")
        return begun


@dataclass(frozen=True, slots=True)
class Begun:
    """A keyed request that goes on."""

    keyed: KeyedRequest
    at: datetime

    def take_over(self, found: IdempotencyKey) -> bool:
        """Begin in place of a request that is over, if no other one does, and that one has not just made something."""
        rows = IdempotencyKey.objects.using(Engine().using).filter(pk=found.pk, at=found.at, made=found.made)
        with write_transaction(rows.db):
            return bool(rows.update(request=self.keyed.request, made=GOES_ON, created=True, at=self.at))

    def remember(self, made: int, *, created: bool = True) -> None:
        """Note what the request made, in the transaction that makes it; raises Refused where another one began."""
        if not self._own().update(made=made, created=created):
            raise Refused(GOES_ON_TEXT, code="in_progress")

    def forget(self) -> None:
        """Leave no key: nothing was made. One that stays is taken over later."""
        try:
            with write_transaction(Engine().using):
                self._own().delete()
        except DatabaseError:
            pass

    def _own(self) -> Any:
        rows = IdempotencyKey.objects.using(Engine().using)
        return rows.filter(digest=self.keyed.digest, made=GOES_ON, at=self.at)


def forget_keys(using: str, now: datetime) -> int:
    """Remove the keys that are not known any more; returns how many."""
    old = IdempotencyKey.objects.using(using).filter(at__lte=_kept_since(now))
    some = list(old.values_list("pk", flat=True)[:FORGOTTEN_AT_ONCE])
    return old.filter(pk__in=some).delete()[0] if some else 0  # but for what was used again since


def _kept_since(now: datetime) -> datetime:
    return now - KEPT


def _hash(value: Any) -> str:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), default=str)
    return hashlib.sha256(text.encode()).hexdigest()
