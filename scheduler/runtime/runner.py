"""Runner: the scheduler of one process, its parts wired together, started and stopped as one."""

import logging
import os
from contextlib import suppress
from typing import TYPE_CHECKING

from scheduler.clock import SYSTEM_CLOCK, Clock
from scheduler.conf import conf
from scheduler.engine.activity import activity_tasks
from scheduler.engine.base import Claimed, Engine
from scheduler.engine.finish import Outcome, Settled
from scheduler.engine.release import release_runs
from scheduler.engine.rescue import close_as_lost
from scheduler.executors import logs
from scheduler.executors.connections import drop_all_of_async_work, drop_connections
from scheduler.executors.thread import ThreadExecutor
from scheduler.models import RunLog, Trigger
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
"""Seconds that the database has for what is written when the runs have ended, or had their time."""
LAST_STEPS = 1.0
"""Seconds that threads have to end, of which none has anything to wait for any more."""


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
        self.monitor = Monitor(self.engine, self.executor, self.clock)
        self.monitoring = Service("monitor", self._look, clock)
        self.keeping = Service("housekeeper", Housekeeper(self.engine, self.member, self.clock).step, clock)
        helping = [self.recording, self.beating, self.monitoring, self.keeping]
        self.draining = self._draining(clock)
        if self.draining is not None:
            helping.append(self.draining)
        self.locking = None if self.locks is None else Service("locks", self.locks.step, clock)
        if self.locking is not None:
            helping.append(self.locking)
        self.watchdog = Watchdog([*helping, self.dispatching], clock)
        self.watching = Service("watchdog", self._watch, clock)
        self.services = [*self.watchdog.services, self.watching]
        self.stopping = False
        self._runs_end_by = float("inf")
        self._closed = Settled()
        self.dispatcher.stop_when(lambda: self.stopping)
        self.dispatcher.adopt_unless(self.recorder.unwritten)

    def start(self) -> None:
        """Start every thread. Needs no database: the dispatcher waits for it."""
        logs.install()
        self._listen()
        for service in self.watchdog.services:
            with suppress(RuntimeError):  # no more threads to be had: the watchdog tries again
                service.start()
        self.watching.start()  # last, or it would take for dead what is only about to start

    def stop(self, seconds: float | None = None) -> None:
        """Stop claiming at once, wait at most `seconds` for living runs, and leave nothing held. Idempotent.

        Runs that did not start are given back; runs that did not end are closed as lost, for others to take over. A
        database that does not answer holds this up for a few seconds at most.
        """
        if self.stopping:
            return
        self._runs_end_by = self.clock.monotonic() + (conf.SHUTDOWN_SECONDS if seconds is None else seconds)
        self.stopping = True
        self.dispatching.stop()
        self.executor.request_stop()
        jobs_changed.disconnect(dispatch_uid=id(self))
        runs_asked_to_stop.disconnect(dispatch_uid=id(self))
        self._have_it_leave()
        self._end_threads()
        self.executor.close()
        drop_all_of_async_work()
        logs.uninstall()

    def is_running(self) -> bool:
        """Return whether the runner was started and not stopped."""
        return not self.stopping and self.dispatching.is_alive()

    def is_here(self) -> bool:
        """Return whether this is its process: a forked child has a copy, whose locks the parent may hold for ever."""
        return self.process.pid == os.getpid()

    def _listen(self) -> None:
        jobs_changed.connect(self._wake, weak=False, dispatch_uid=id(self))
        runs_asked_to_stop.connect(self._stop_runs, weak=False, dispatch_uid=id(self))

    def _draining(self, clock: Clock) -> Service | None:
        if not activity_tasks(self.engine.registry):
            return None
        from scheduler.runtime.drainer import Drainer  # most projects need none of it

        return Service("activity", Drainer(self.engine, self.member, self.clock).step, clock)

    def _slot_locks(self) -> "SlotLocks":
        from scheduler.runtime.locking import slot_locks  # most projects need none of it

        return slot_locks(self.engine, self.clock)

    def _watch(self) -> float:
        """Watch over the services; at the end, leave."""
        if not self.stopping:
            return self.watchdog.step()
        self.watching.stop()
        self._leave()
        return 0.0

    def _have_it_leave(self) -> None:
        """Have the watchdog's thread leave, and wait for it no longer than allowed: a database may never answer.

        That thread has no connection yet which could be stale or in use, and it lives already: while the interpreter
        shuts down, none can be started.
        """
        if self.watching.is_alive():
            self.watching.wake()
            self.watching.join(self._seconds_for_runs() + LAST_WRITES)
        else:
            self._leave()

    def _leave(self) -> None:
        """Do what is to be done last, each step whatever became of the one before it."""
        drop_connections()
        steps = (self._give_back, self._wait_for_runs, self._write_ends, self._close_and_go, self._release_locks)
        for step in (*steps, self._tell_of_closed):  # last: a receiver may be slow, and then holds nothing
            try:
                step()
            except Exception as error:
                drop_connections()
                text = "The scheduler could not leave cleanly; others will rescue its runs"
                with suppress(Exception):  # a logging handler that fails must not end this
                    logger.error(text, exc_info=error, extra={"action": "leave_failed"})

    def _give_back(self) -> None:
        self.dispatching.join(self._seconds_for_runs())  # it may be about to hand over what it has just claimed
        if unstarted := [*self.dispatcher.taken_back, *self.executor.withdraw()]:
            announce.settled(release_runs(self.engine, unstarted))

    def _wait_for_runs(self) -> None:
        self.executor.wait_until_idle(self._seconds_for_runs())

    def _write_ends(self) -> None:
        self.recording.stop()
        self.recording.join(LAST_WRITES / 2)
        self.recorder.write_all()

    def _close_and_go(self) -> None:
        """Leave only when nothing is held: whoever stays and is silent is found dead, and its runs with it."""
        held = RunLog.objects.using(self.engine.using).living().filter(instance_id=self.engine.instance_id)
        self._closed = close_as_lost(
            self.engine, list(held), self.clock.now(), "its process was stopped", blameless=True
        )
        self.member.leave()

    def _tell_of_closed(self) -> None:
        announce.settled(self._closed)

    def _release_locks(self) -> None:
        if self.locks is not None and self.locking is not None:
            self.locking.stop()
            self.locking.join(LAST_STEPS)
            self.locks.close()

    def _seconds_for_runs(self) -> float:
        return max(0.0, self._runs_end_by - self.clock.monotonic())

    def _end_threads(self) -> None:
        """Wait for each: one that is at a database while the interpreter shuts down can abort the process."""
        now = self.clock.monotonic()
        deadline = max(min(now, self._runs_end_by) + LAST_WRITES, now + LAST_STEPS)
        for service in self.services:
            service.stop()
        for service in self.services:
            service.join(deadline - self.clock.monotonic())

    def _done(self, claimed: Claimed, outcome: Outcome) -> None:
        self.recorder.put(claimed, outcome)
        if self.locks is not None:
            self.locks.end(claimed, outcome)
        if not (self.recorder.gathers and self.executor.is_pressed()):
            self.recording.wake()

    def _freed(self) -> None:
        if self.dispatcher.starved and self.executor.capacity():
            self.dispatching.wake()

    def _look(self) -> float:
        if self.executor.keeps_waiting():
            self.dispatching.wake()  # it gives back what waits too long
        return self.monitor.step()

    def _record(self) -> float:
        return GATHER_SECONDS if self.recorder.write() else LONGEST_WAIT

    def _settled(self, settled: Settled) -> None:
        announce.settled(settled)
        if self.draining is not None and any(run.trigger == Trigger.ACTIVITY for run in settled.finished):
            self.draining.wake()
        sleeps_until = self.dispatcher.sleeps_until
        starts = [run.job.next_start_at for run in settled.finished if run.job.next_start_at]
        grouped = any(run.job.group for run in settled.finished)
        if sleeps_until is None or settled.promised or grouped or any(start < sleeps_until for start in starts):
            self.dispatching.wake()

    def _stop_runs(self, run_ids: list[int], **_: object) -> None:
        if self.is_here():
            self.executor.stop_runs(run_ids, "cancelled")

    def _wake(self, sender: object, **_: object) -> None:
        if self.is_here():
            self.dispatching.wake()
