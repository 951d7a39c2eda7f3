"""Leases: the slots that runs of this process hold, and until when."""

import threading
from dataclasses import dataclass

from scheduler.clock import Clock
from scheduler.conf import conf
from scheduler.engine.outcome import Outcome
from scheduler.executors.living import Living
from scheduler.locks.base import Bid, SlotLock
from scheduler.models import Status


@dataclass(slots=True, eq=False)
class Lease:
    """The hold of one run on its slot. `kept` is for how many seconds others shall find the slot taken afterwards."""

    living: Living
    bid: Bid
    fence: int
    kept: float
    good_until: float
    """On the monotonic clock, counted from before the last yes was asked for."""
    ended: Outcome | None = None

    def wanted(self, seconds: float) -> float:
        """Return how long to hold the slot from now; one that was not run after all is given back."""
        if self.ended is None:
            return seconds
        return 0.0 if self.ended.status == Status.SKIPPED else self.kept


class Leases:
    """Filled by workers, renewed by one thread, which takes out what is over."""

    def __init__(self, lock: SlotLock, clock: Clock) -> None:
        self._lock = lock
        self._clock = clock
        self._by_run: dict[int, Lease] = {}
        self._changed = threading.Lock()

    def hold(self, lease: Lease) -> None:
        """Renew a lease from now on."""
        with self._changed:
            self._by_run[lease.living.claimed.run.pk] = lease

    def end(self, run_id: int, outcome: Outcome) -> None:
        """Note that a run has ended; its lease is renewed once more, for as long as the slot shall stay taken."""
        with self._changed:
            lease = self._by_run.get(run_id)
            if lease is not None:
                lease.ended = outcome

    def renew(self) -> list[Lease]:
        """Renew all and return those that are lost. Raises LockUnavailable when nobody could be asked."""
        asked_at, seconds = self._clock.monotonic(), conf.INSTANCE_TTL_SECONDS
        with self._changed:
            leases = [(lease, lease.ended) for lease in self._by_run.values()]
            asked = [(lease.bid, lease.wanted(seconds)) for lease, _ in leases]
        if not asked:
            return []
        lost = []
        for (lease, ended), held in zip(leases, self._lock.renew(asked), strict=True):
            lease.good_until = asked_at + seconds
            if not held:
                lost.append(lease)
            if ended is not None or not held:
                self._drop(lease)
        return [lease for lease in lost if lease.wanted(seconds)]

    def expired(self) -> list[Lease]:
        """Return the leases of living runs that ran out since nobody could be asked; those of ended runs just go."""
        now = self._clock.monotonic()
        with self._changed:
            over = [lease for lease in self._by_run.values() if now >= lease.good_until]
        for lease in over:
            self._drop(lease)
        return [lease for lease in over if lease.ended is None]

    def _drop(self, lease: Lease) -> None:
        with self._changed:
            del self._by_run[lease.living.claimed.run.pk]
