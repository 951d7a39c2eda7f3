"""A slot lock in memory, for tests of those who ask one. It keeps the same contract as the real one."""

import threading
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from scheduler.clock import Clock
from scheduler.slot_locks.base import Answer, Bid, LockUnavailable


@dataclass
class Hold:
    """Who has a slot, and until when."""

    owner: str
    host: str
    until: float


class MemoryLock:
    """`away` makes it unavailable; `asked` counts how often it was asked for a slot."""

    def __init__(self, clock: Clock) -> None:
        self.away = False
        self.asked = 0
        self.holds: dict[tuple[str, object], Hold] = {}
        self._clock = clock
        self._fences: Counter[str] = Counter()
        self._changed = threading.Lock()

    def take(self, bid: Bid, seconds: float) -> Answer:
        self.asked += 1
        self._answer()
        with self._changed:
            hold = self._living(bid)
            if hold is not None and hold.owner not in (bid.owner, *bid.former):
                return Answer(holder=hold.host)
            self._fences[bid.job] += 1
            self.holds[bid.job, bid.slot] = Hold(bid.owner, bid.host, self._clock.monotonic() + seconds)
            return Answer(fence=self._fences[bid.job])

    def renew(self, leases: Sequence[tuple[Bid, float]]) -> list[bool]:
        self._answer()
        with self._changed:
            return [self._renewed(bid, seconds) for bid, seconds in leases]

    def keep(self, leases: Sequence[tuple[Bid, float]]) -> list[bool]:
        self._answer()
        with self._changed:
            return [self._kept(bid, seconds) for bid, seconds in leases]

    def close(self) -> None:
        """Nothing is open."""

    def _renewed(self, bid: Bid, seconds: float) -> bool:
        hold = self._living(bid)
        if hold is None or hold.owner != bid.owner:
            return False
        hold.until = self._clock.monotonic() + seconds
        return True

    def _kept(self, bid: Bid, seconds: float) -> bool:
        hold = self._living(bid)
        if hold is not None and hold.owner != bid.owner:
            return False
        self.holds[bid.job, bid.slot] = Hold(bid.owner, bid.host, self._clock.monotonic() + seconds)
        return True

    def _living(self, bid: Bid) -> Hold | None:
        hold = self.holds.get((bid.job, bid.slot))
        return hold if hold is not None and hold.until > self._clock.monotonic() else None

    def _answer(self) -> None:
        if self.away:
            raise LockUnavailable("It is away.")
