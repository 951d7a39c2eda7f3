"""Runner: the scheduler of one process, its parts wired together, started and stopped as one."""

import logging
import os
from contextlib import suppress
from typing import TYPE_CHECKING

from django.db import Error as DatabaseError
from django.utils.module_loading import import_string

from scheduler.activity.service import activity_tasks
from scheduler.clock import SYSTEM_CLOCK, Clock
from scheduler.conf import conf
from scheduler.engine.finish import Settled
from scheduler.engine.handover import take_back
from scheduler.engine.release import release_each
from scheduler.executors import log_capture
from scheduler.executors.connections import drop_connections
from scheduler.policy.executor import Executor, executors, handovers
from scheduler.registry import Registry, registry
from scheduler.runtime import publish
from scheduler.runtime.dispatcher import Dispatcher
from scheduler.runtime.handing import Handing
from scheduler.runtime.listening.channel import is_possible
from scheduler.runtime.neighbours import Neighbours
from scheduler.runtime.parts import LAST_STEPS, LAST_WRITES, Parts
from scheduler.runtime.pruner import Housekeeper
from scheduler.runtime.service import Service
from scheduler.signals import jobs_changed, runs_asked_to_stop, tasks_enqueued

if TYPE_CHECKING:
    from scheduler.runtime.listening.listener import Listener

logger = logging.getLogger("scheduler")


class Runner(Parts):
    """The parts of one process with what looks for work: dispatcher, housekeeper and, where users are due, drainer."""

    def __init__(self, started_by: str, *, tasks: Registry = registry, clock: Clock = SYSTEM_CLOCK) -> None:
        super().__init__(
            started_by,
            workers=conf.MAX_WORKERS,
            tasks=tasks,
            clock=clock,
            settled=self._settled,
            freed=lambda: self.dispatcher.freed(),
            late=lambda: self.dispatching.wake(),  # it gives back what waits too long
            handovers=handovers(),
        )
        self.handing: dict[str, Handing] = {}
        self.sending = [self._sending(one, clock) for one in executors() if one.hands_over]
        self.stopping = False
        self.dispatcher = Dispatcher(
            self.engine,
            self.member,
            self.pool,
            self.clock,
            wake=lambda: self.dispatching.wake(),
            stopping=lambda: self.stopping,
            unwritten=self.recorder.unwritten,
            handing=self.handing,
        )
        self.neighbours = Neighbours()
        housekeeper = Housekeeper(self.engine, self.member, self.clock, self.neighbours.look)
        self.dispatching = Service("dispatcher", self.dispatcher.step, clock)
        self.keeping = Service("housekeeper", housekeeper.step, clock)
        self._hear = [publish.settled, self.dispatcher.settled]
        self.draining = self._draining(clock)
        self.notifying = self._notifying(clock) if conf.NOTIFY or conf.SECRET_PINGS else None
        self.listener = self._listener(clock) if is_possible(self.engine.using) else None
        self.listening = Service("listener", self.listener.step, clock) if self.listener else None
        own = [self.keeping, self.draining, self.notifying, self.listening, *self.sending, self.dispatching]
        self._watch_over(clock, *filter(None, own))
        self.began = self.clock.monotonic()
        self._runs_end_by = float("inf")
        self._closed = Settled()

    def start(self) -> None:
        """Start every thread. Needs no database: the dispatcher waits for it."""
        self._listen()
        super().start()

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
        if self.listening is not None:
            self.listening.stop()
        self.pool.request_stop()
        jobs_changed.disconnect(dispatch_uid=id(self))
        tasks_enqueued.disconnect(dispatch_uid=id(self))
        runs_asked_to_stop.disconnect(dispatch_uid=id(self))
        self._have_it_leave()
        now = self.clock.monotonic()
        self.end_threads(max(min(now, self._runs_end_by) + LAST_WRITES, now + LAST_STEPS))
        if self.listener is not None:
            self.listener.close()
        log_capture.uninstall()

    def is_running(self) -> bool:
        """Return whether the runner was started and not stopped."""
        return not self.stopping and self.dispatching.is_alive()

    def is_here(self) -> bool:
        """Return whether this is its process: a forked child has a copy, whose locks the parent may hold for ever."""
        return self.process.pid == os.getpid()

    def _listen(self) -> None:
        jobs_changed.connect(self._wake, weak=False, dispatch_uid=id(self))
        tasks_enqueued.connect(self._look_for_task, weak=False, dispatch_uid=id(self))
        runs_asked_to_stop.connect(self._stop_runs, weak=False, dispatch_uid=id(self))

    def _sending(self, executor: Executor, clock: Clock) -> Service:
        handing = self.handing[executor.name] = Handing(executor, wake=lambda: sending.wake())
        sending = Service(f"{executor.name} handover", handing.step, clock, log_every=60.0)
        return sending

    def _listener(self, clock: Clock) -> "Listener":
        from scheduler.runtime.listening.listener import Listener  # on PostgreSQL only

        return Listener(
            self.engine, clock, changed=lambda: self.dispatching.wake(), enqueued=lambda: self.dispatcher.enqueued()
        )

    def _draining(self, clock: Clock) -> Service | None:
        if not activity_tasks(self.engine.registry):
            return None
        from scheduler.activity.drainer import Drainer  # most projects need none of it

        drainer = Drainer(self.engine, self.member.may_claim, self.clock, wake=lambda: draining.wake())
        draining = Service("activity", drainer.step, clock)
        self._hear.append(drainer.settled)
        return draining

    def _notifying(self, clock: Clock) -> Service:
        """Make the thread that tells people. Its package is above this one, and loaded only where it is used."""
        make = import_string("scheduler.notifications.service.Notifier")
        notifier = make(self.engine, self.member.may_claim, self.clock, stopping=lambda: self.stopping)
        notifying = Service("notifier", notifier.step, clock)
        notifier.wake, notifier.beat = notifying.wake, notifying.sign_of_life
        self._hear.append(notifier.settled)
        return notifying

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
        steps = (self._give_back, self._wait_for_runs, self.write_ends, self._close_and_go, self.release_locks)
        for step in (*steps, self._tell_of_closed):  # last: a receiver may be slow, and then holds nothing
            try:
                step()
            except Exception as error:
                drop_connections()
                text = "The scheduler could not leave cleanly; others will rescue its runs"
                with suppress(Exception):  # a logging handler that fails must not end this
                    trace = None if isinstance(error, DatabaseError) else error  # what it says is all there is to know
                    logger.error("%s: %s", text, error, exc_info=trace, extra={"action": "leave_failed"})

    def _give_back(self) -> None:
        self.dispatching.join(self._seconds_for_runs())  # it may be about to hand over what it has just claimed
        if unstarted := [*self.dispatcher.taken_back, *self.pool.withdraw()]:
            publish.settled(release_each(self.engine, unstarted)[0])
        if unsent := [pk for one in self.handing.values() for pk in one.withdraw()]:
            take_back(self.engine, self.clock.now(), pk__in=unsent)

    def _wait_for_runs(self) -> None:
        self.pool.wait_until_idle(self._seconds_for_runs())

    def _close_and_go(self) -> None:
        """Leave, on a second connection where the first one breaks just then."""
        if not self.member.entered:
            return  # the tables may not be there
        try:
            self._go()
        except DatabaseError:
            drop_connections()
            self._go()

    def _go(self) -> None:
        """Leave only when nothing is held: a registered instance without heartbeats is declared dead, its runs lost."""
        self._closed += self.close_held("its process was stopped", blameless=True)
        self.member.leave()

    def _tell_of_closed(self) -> None:
        publish.settled(self._closed)

    def _seconds_for_runs(self) -> float:
        return max(0.0, self._runs_end_by - self.clock.monotonic())

    def _settled(self, settled: Settled) -> None:
        for hear in self._hear:
            hear(settled)

    def _stop_runs(self, run_ids: list[int], **_: object) -> None:
        if self.is_here():
            self.pool.stop_runs(run_ids, "cancelled")

    def _wake(self, sender: object, **_: object) -> None:
        if self.is_here():
            self.dispatching.wake()

    def _look_for_task(self, sender: object, **_: object) -> None:
        if self.is_here():
            self.dispatcher.enqueued()
