"""Leases: the slots that runs of this process hold, and until when."""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from scheduler.clock import Clock
from scheduler.conf import conf
from scheduler.engine.outcome import Outcome
from scheduler.executors.live_run import Living
from scheduler.models import Status
from scheduler.slot_locks.base import Bid, SlotLock

Ask = Callable[[Sequence[tuple[Bid, float]]], list[bool]]


@dataclass(slots=True, eq=False)
class Lease:
    """The hold of one run on its slot. `kept` is how many seconds the slot stays taken afterwards."""

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
        return 0.0 if self.ended.status in (Status.SKIPPED, Status.PENDING) else self.kept

    def is_told_late(self, now: float) -> bool:
        """Return whether the run has ended, and the lock could not be told before the lease was over."""
        return self.ended is not None and now >= self.good_until


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
        """Note that a run has ended; its lease is renewed once more, for as long as the slot has to stay taken."""
        with self._changed:
            lease = self._by_run.get(run_id)
            if lease is not None:
                lease.ended = outcome

    def renew(self) -> list[Lease]:
        """Renew all and return those that are lost. Raises LockUnavailable when the service is unreachable."""
        asked_at, seconds = self._clock.monotonic(), conf.INSTANCE_TTL_SECONDS
        with self._changed:
            leases = [(lease, lease.ended) for lease in self._by_run.values()]
        late = [(lease, ended) for lease, ended in leases if lease.is_told_late(asked_at)]
        lost = self._asked(self._lock.keep, late, asked_at)
        lost += self._asked(self._lock.renew, [each for each in leases if each not in late], asked_at)
        return [lease for lease in lost if lease.wanted(seconds)]

    def _asked(self, ask: Ask, leases: Sequence[tuple[Lease, Outcome | None]], asked_at: float) -> list[Lease]:
        """Ask for leases, and return those that are lost. What has ended by then is told, and no more renewed."""
        if not leases:
            return []
        seconds, lost = conf.INSTANCE_TTL_SECONDS, []
        answers = ask([(lease.bid, lease.wanted(seconds)) for lease, _ in leases])
        for (lease, ended), held in zip(leases, answers, strict=True):
            lease.good_until = asked_at + seconds
            if not held:
                lost.append(lease)
            if ended is not None or not held:
                self._drop(lease)
        return lost

    def expired(self) -> list[Lease]:
        """Return the leases of living runs that expired while the service was unreachable.

        Those of ended runs are told when it is back, since others would run their slots again; what was given back
        needs no telling.
        """
        now = self._clock.monotonic()
        with self._changed:
            over = [lease for lease in self._by_run.values() if now >= lease.good_until]
        over = [lease for lease in over if lease.ended is None or now >= lease.good_until + lease.wanted(0.0)]
        for lease in over:
            self._drop(lease)
        return [lease for lease in over if lease.ended is None]

    def _drop(self, lease: Lease) -> None:
        with self._changed:
            del self._by_run[lease.living.claimed.run.pk]
