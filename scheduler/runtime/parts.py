"""Parts: an instance, its pool, and the threads that see through what it has claimed, whatever looks for work."""

from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from django.db.models import QuerySet

from scheduler.clock import SYSTEM_CLOCK, Clock
from scheduler.conf import conf
from scheduler.context import RunContext
from scheduler.engine.base import Claimed, Engine
from scheduler.engine.finish import Outcome, Settled
from scheduler.engine.rescue import close_as_lost
from scheduler.executors import log_capture
from scheduler.executors.call import context_for
from scheduler.executors.connections import drop_all_of_async_work
from scheduler.executors.pool import Pool
from scheduler.models import RunLog
from scheduler.registry import Registry, registry
from scheduler.runtime.database_clock import DatabaseClock
from scheduler.runtime.heartbeat import Heartbeat
from scheduler.runtime.monitor import Monitor
from scheduler.runtime.process_identity import this_process
from scheduler.runtime.recorder import Recorder
from scheduler.runtime.registration import Member
from scheduler.runtime.service import Service
from scheduler.runtime.watchdog import Watchdog
from scheduler.safetext import visible

if TYPE_CHECKING:
    from scheduler.slot_locks.worker import SlotLocks

LAST_WRITES = 5.0
"""Seconds that the database has for what is written when the runs have ended, or had their time."""
LAST_STEPS = 1.0
"""Seconds that threads have to end, of which none has anything to wait for any more."""
LONGEST_TROUBLE = 500


class Parts:
    """What every process has in which runs are called. `settled` hears of what was written, `freed` of workers, `late`
    of a run that waits too long for one."""

    def __init__(
        self,
        started_by: str,
        *,
        workers: int,
        settled: Callable[[Settled], object],
        tasks: Registry = registry,
        clock: Clock = SYSTEM_CLOCK,
        freed: Callable[[], None] = lambda: None,
        late: Callable[[], None] = lambda: None,
        handovers: frozenset[str] = frozenset(),
        context_for: Callable[[Claimed], RunContext] = context_for,
    ) -> None:
        self.process, self.started_by = this_process(), started_by
        self.clock = DatabaseClock(clock)
        name = f"{self.process.host}:{self.process.pid}"
        self.engine = Engine(registry=tasks, name=name, handovers=handovers)
        self.member = Member(self.engine, self.clock, started_by, self._trouble, lambda: self.pool.told())
        self.locks = self._slot_locks() if conf.LOCK_URL else None
        self.pool = Pool(
            self._ended,
            self.clock,
            workers=workers,
            freed=freed,
            may_start=self.member.may_claim,
            refusal=None if self.locks is None else self.locks.refusal,
            context_for=context_for,
        )
        self.recorder = Recorder(
            self.engine,
            settled,
            self.clock.now,
            is_pressed=self.pool.is_pressed,
            wake=lambda: self.recording.wake(),
        )
        self.recording = Service("recorder", self.recorder.step, clock)
        self.beating = Service("heartbeat", Heartbeat(self.member, self.pool).step, clock)
        self.monitoring = Service("monitor", Monitor(self.engine, self.pool, self.clock, late).step, clock)
        self.locking = None if self.locks is None else Service("locks", self.locks.step, clock)

    def _watch_over(self, clock: Clock, *further: Service) -> None:
        """Make the watchdog of the threads there are, and of `further` ones."""
        own = [self.recording, self.beating, self.monitoring, *filter(None, [self.locking])]
        self.watchdog = Watchdog([*own, *further], clock)
        self.watching = Service("watchdog", self._watch, clock)
        self.services = [*self.watchdog.services, self.watching]

    def start(self) -> None:
        """Start every thread. Needs no database."""
        log_capture.install()
        for service in self.watchdog.services:
            with suppress(RuntimeError):  # no more threads to be had: the watchdog tries again
                service.start()
        self.watching.start()  # last, or it would take for dead what is only about to start

    def write_ends(self) -> None:
        """Write how runs have ended, without the thread that did so."""
        self.recording.stop()
        self.recording.join(LAST_WRITES / 2)
        self.recorder.write_all()

    def close_held(self, why: str, *, blameless: bool = False) -> Settled:
        """Close as lost what this instance still holds."""
        return close_as_lost(self.engine, list(self.held()), self.clock.now(), why, blameless=blameless)

    def held(self) -> QuerySet[RunLog]:
        """Return the living runs of this instance, as the ledger has them."""
        return RunLog.objects.using(self.engine.using).living().filter(instance_id=self.engine.instance_id)

    def release_locks(self) -> None:
        """Let go of the slots of runs that have ended."""
        if self.locks is not None and self.locking is not None:
            self.locking.stop()
            self.locking.join(LAST_STEPS)
            self.locks.close()

    def end_threads(self, deadline: float) -> None:
        """Wait for each until `deadline`, on the monotonic clock.

        One that is at a database while the interpreter shuts down can abort the process.
        """
        for service in reversed(self.services):  # the watchdog first, which would start the others again
            service.stop()
        for service in self.services:
            service.join(deadline - self.clock.monotonic())
        self.pool.close()
        drop_all_of_async_work()

    def _watch(self) -> float:
        return self.watchdog.step()

    def _ended(self, claimed: Claimed, outcome: Outcome) -> None:
        self.recorder.put(claimed, outcome)
        if self.locks is not None:
            self.locks.end(claimed, outcome)

    def _trouble(self) -> str:
        """What the others are told with each heartbeat: the services that fail again and again, a line each.

        In ASCII, which every database takes: a heartbeat must not fail for what it tells.
        """
        found = [visible(trouble) for service in self.services if (trouble := service.trouble())]
        share = LONGEST_TROUBLE // max(1, len(found)) - 1
        return "\n".join(one.encode("ascii", "backslashreplace").decode()[:share] for one in found)

    def _slot_locks(self) -> "SlotLocks":
        from scheduler.slot_locks.worker import slot_locks  # most projects need none of it

        return slot_locks(self.engine, self.clock)
