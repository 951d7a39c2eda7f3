"""Runner: the scheduler of one process, its parts wired together, started and stopped as one."""

import logging
from contextlib import suppress
from typing import TYPE_CHECKING

from scheduler.clock import SYSTEM_CLOCK, Clock
from scheduler.conf import conf
from scheduler.engine.base import Claimed, Engine
from scheduler.engine.finish import Outcome, Settled
from scheduler.engine.release import release_runs
from scheduler.engine.rescue import close_as_lost
from scheduler.executors import logs
from scheduler.executors.thread import ThreadExecutor
from scheduler.models import RunLog
from scheduler.registry import Registry, registry
from scheduler.runtime import announce
from scheduler.runtime.dbclock import DatabaseClock
from scheduler.runtime.dispatcher import Dispatcher
from scheduler.runtime.heartbeat import Heartbeat
from scheduler.runtime.host import this_process
from scheduler.runtime.housekeeper import Housekeeper
from scheduler.runtime.member import Member
from scheduler.runtime.monitor import Monitor
from scheduler.runtime.recorder import GATHER_SECONDS, Recorder
from scheduler.runtime.service import LONGEST_WAIT, Service
from scheduler.runtime.watchdog import Watchdog
from scheduler.signals import jobs_changed, runs_asked_to_stop

if TYPE_CHECKING:
    from scheduler.runtime.locking import SlotLocks

logger = logging.getLogger("scheduler")

LAST_WRITES = 5.0


class Runner:
    """Dispatcher, pool, recorder, heartbeat and watchdog of one process."""

    def __init__(self, started_by: str, *, tasks: Registry = registry, clock: Clock = SYSTEM_CLOCK) -> None:
        process = this_process()
        self.process = process
        self.started_by = started_by
        self.clock = DatabaseClock(clock)
        self.engine = Engine(registry=tasks, name=f"{process.host}:{process.pid}")
        self.member = Member(self.engine, self.clock, started_by)
        self.locks = self._slot_locks() if conf.LOCK_URL else None
        self.executor = ThreadExecutor(
            self._done,
            self.clock,
            workers=conf.MAX_WORKERS,
            freed=self._freed,
            may_start=self.member.may_claim,
            refusal=None if self.locks is None else self.locks.refusal,
        )
        self.recorder = Recorder(self.engine, self._settled, self.clock.now)
        self.dispatcher = Dispatcher(self.engine, self.member, self.executor, self.clock)
        self.dispatching = Service("dispatcher", self.dispatcher.step, clock)
        self.recording = Service("recorder", self._record, clock)
        self.beating = Service("heartbeat", Heartbeat(self.member, self.executor).step, clock)
        self.monitoring = Service("monitor", Monitor(self.engine, self.executor, self.clock).step, clock)
        self.keeping = Service("housekeeper", Housekeeper(self.engine, self.member, self.clock).step, clock)
        helping = [self.recording, self.beating, self.monitoring, self.keeping]
        if self.locks is not None:
            helping.append(Service("locks", self.locks.step, clock))
        self.watchdog = Watchdog([*helping, self.dispatching], clock)
        self.watching = Service("watchdog", self.watchdog.step, clock)
        self.services = [*self.watchdog.services, self.watching]
        self.stopping = False
        self.dispatcher.stop_when(lambda: self.stopping)
        self.dispatcher.adopt_unless(self.recorder.unwritten)

    def start(self) -> None:
        """Start every thread. Needs no database: the dispatcher waits for it."""
        logs.install()
        jobs_changed.connect(self._wake, weak=False, dispatch_uid=id(self))
        runs_asked_to_stop.connect(self._stop_runs, weak=False, dispatch_uid=id(self))
        for service in self.watchdog.services:
            with suppress(RuntimeError):  # no more threads to be had: the watchdog tries again
                service.start()
        self.watching.start()  # last, or it would take for dead what is only about to start

    def stop(self, seconds: float | None = None) -> None:
        """Stop claiming at once, wait at most `seconds` for living runs, and leave nothing held. Idempotent.

        Runs that did not start are given back; runs that did not end are closed as lost, for others to take over.
        """
        if self.stopping:
            return
        self.stopping = True
        self.watching.stop()
        self.dispatching.stop()
        self.executor.request_stop()
        jobs_changed.disconnect(dispatch_uid=id(self))
        runs_asked_to_stop.disconnect(dispatch_uid=id(self))
        self._finish_what_lives(conf.SHUTDOWN_SECONDS if seconds is None else seconds)
        self._end_threads()
        if self.locks is not None:
            self.locks.close()
        self.executor.close()
        logs.uninstall()

    def is_running(self) -> bool:
        """Return whether the runner was started and not stopped."""
        return not self.stopping and self.dispatching.is_alive()

    def _slot_locks(self) -> "SlotLocks":
        from scheduler.runtime.locking import slot_locks  # most projects need none of it

        return slot_locks(self.engine, self.clock)

    def _finish_what_lives(self, seconds: float) -> None:
        deadline = self.clock.monotonic() + seconds
        self.dispatching.join(seconds)
        try:
            if unstarted := self.executor.withdraw():
                release_runs(self.engine, unstarted)
            self.executor.wait_until_idle(deadline - self.clock.monotonic())
            self.recording.stop()
            self.recording.join(LAST_WRITES)
            self._write_everything()
            held = RunLog.objects.using(self.engine.using).living().filter(instance_id=self.engine.instance_id)
            close_as_lost(self.engine, list(held), self.clock.now(), "its process was stopped", blameless=True)
            self.member.leave()
        except Exception:
            logger.exception("The scheduler could not leave cleanly; others will rescue its runs")

    def _end_threads(self) -> None:
        """Wait for each: one that is at a database while the interpreter shuts down can abort the process."""
        deadline = self.clock.monotonic() + LAST_WRITES
        for service in self.services:
            service.stop()
        for service in self.services:
            service.join(deadline - self.clock.monotonic())

    def _write_everything(self) -> None:
        self.recorder.take_over()
        while self.recorder.write():
            pass

    def _done(self, claimed: Claimed, outcome: Outcome) -> None:
        self.recorder.put(claimed, outcome)
        if self.locks is not None:
            self.locks.end(claimed, outcome)
        if not (self.recorder.gathers and self.executor.is_pressed()):
            self.recording.wake()

    def _freed(self) -> None:
        if self.dispatcher.starved and self.executor.capacity():
            self.dispatching.wake()

    def _record(self) -> float:
        return GATHER_SECONDS if self.recorder.write() else LONGEST_WAIT

    def _settled(self, settled: Settled) -> None:
        announce.settled(settled)
        sleeps_until = self.dispatcher.sleeps_until
        starts = [run.job.next_start_at for run in settled.finished if run.job.next_start_at]
        grouped = any(run.job.group for run in settled.finished)
        if sleeps_until is None or settled.promised or grouped or any(start < sleeps_until for start in starts):
            self.dispatching.wake()

    def _stop_runs(self, run_ids: list[int], **_: object) -> None:
        self.executor.stop_runs(run_ids, "cancelled")

    def _wake(self, sender: object, **_: object) -> None:
        self.dispatching.wake()
