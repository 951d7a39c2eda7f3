"""Foreground: run one job now, by the parts of a scheduler and under the same guards, and wait for its end."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import timedelta
from typing import Any

from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper

from scheduler.clock import SYSTEM_CLOCK
from scheduler.conf import conf
from scheduler.context import LogLines, RunContext
from scheduler.engine.base import Claimed, Engine
from scheduler.engine.claim import claim_waiting
from scheduler.engine.control import run_now
from scheduler.engine.finish import Outcome
from scheduler.engine.limits import full_groups, read_limits
from scheduler.engine.release import release_runs
from scheduler.engine.rescue import close_as_lost
from scheduler.engine.sync import ensure_job
from scheduler.engine.write import write_transaction
from scheduler.exceptions import Refused, SchedulerError
from scheduler.executors import logs
from scheduler.executors.connections import drop_all_of_async_work
from scheduler.executors.invoke import context_for
from scheduler.executors.thread import ThreadExecutor
from scheduler.models import Job, RunLog
from scheduler.models.instance import FOR_ONE_RUN
from scheduler.runtime import announce
from scheduler.runtime.dbclock import DatabaseClock
from scheduler.runtime.heartbeat import Heartbeat
from scheduler.runtime.host import this_process
from scheduler.runtime.member import Member
from scheduler.runtime.monitor import Monitor
from scheduler.runtime.recorder import Recorder
from scheduler.runtime.service import LONGEST_WAIT, Service
from scheduler.runtime.stoprequest import StopRequest
from scheduler.runtime.watchdog import Watchdog

LAST_STEPS = 5.0
"""Seconds until we leave, whatever our threads wait for."""
AT_ONCE = timedelta(0)

Line = Callable[[str], object]


def run_in_foreground(
    name: str,
    kwargs: Mapping[str, Any] | None = None,
    *,
    actor: str = "",
    stop: StopRequest | None = None,
    log: Line = lambda line: None,
) -> RunLog:
    """Run a job and return its row of the ledger. While it runs, this process is an instance like any other.

    `log` gets the lines of its log as they come. When `stop` comes, the run is asked to stop and cancelled; one that
    does not agree within SCHEDULER_SHUTDOWN_SECONDS is lost. Raises UnknownJob with near names, Refused with the
    reason, or SchedulerError where the threads that do the work would see nothing: inside a transaction, in memory.
    """
    stop = stop or StopRequest()
    one = _OneRun(stop.wake, log)
    try:
        claimed = one.begin(name, kwargs, actor)
        stop.wait(one.is_over)
        if stop.came is not None:
            one.stop(f"its process was ended by {stop.came.name}")
        return RunLog.objects.using(one.engine.using).select_related("job").get(pk=claimed.run.pk)
    finally:
        one.leave()


class _OneRun:
    """A scheduler without a dispatcher: it has this one run to see through, and takes no other."""

    def __init__(self, changed: Callable[[], object], log: Line) -> None:
        process = this_process()
        self.engine = Engine(name=f"{process.host}:{process.pid}")
        self._clock = DatabaseClock(SYSTEM_CLOCK)
        self._changed, self._log = changed, log
        self._member = Member(self.engine, self._clock, FOR_ONE_RUN)
        self._executor = ThreadExecutor(self._done, self._clock, workers=1, context_for=self._context_for)
        self._recorder = Recorder(self.engine, announce.settled, self._clock.now)
        self._recording = Service("recorder", self._record, SYSTEM_CLOCK)
        beating = Service("heartbeat", Heartbeat(self._member, self._executor).step, SYSTEM_CLOCK)
        monitoring = Service("monitor", Monitor(self.engine, self._executor, self._clock).step, SYSTEM_CLOCK)
        watchdog = Watchdog([self._recording, beating, monitoring], SYSTEM_CLOCK)
        self._services = [*watchdog.services, Service("watchdog", watchdog.step, SYSTEM_CLOCK)]

    def begin(self, name: str, kwargs: Mapping[str, Any] | None, actor: str) -> Claimed:
        """Become an instance, claim a run of the job and start it."""
        if _is_private(connections[self.engine.using]):
            raise SchedulerError(
                "No job can be run in the foreground inside a transaction, or on a database in memory: the threads that"
                " do the work see nothing of it."
            )
        self._member.join_for_one_run()
        ensure_job(self.engine, name, self._clock.now())
        logs.install()
        for service in self._services:
            service.start()
        if not self._executor.capacity():
            raise RuntimeError("can't start new thread")
        claimed = self._claim(name, kwargs, actor)
        if not self._member.may_claim():  # the answer came after the lease: others may have begun the run again by now
            announce.settled(release_runs(self.engine, [claimed]))
            raise Refused(f"The database answered too late; run {claimed.run.pk} waits for the scheduler.", code="busy")
        self._executor.submit(claimed)
        return claimed

    def is_over(self) -> bool:
        """Whether the run has ended, and the ledger says so."""
        return not self._executor.run_ids() and not self._recorder.pending()

    def stop(self, why: str) -> None:
        """Ask the run to stop, and wait for it; close it as lost if it does not."""
        self._executor.stop_runs(self._executor.run_ids(), "cancelled")
        self._executor.request_stop()
        self._executor.withdraw()  # it may not have begun
        self._executor.wait_until_idle(conf.SHUTDOWN_SECONDS)
        self._recording.stop()
        self._recording.join(LAST_STEPS)
        self._recorder.write_all()
        held = RunLog.objects.using(self.engine.using).living().filter(instance_id=self.engine.instance_id)
        announce.settled(close_as_lost(self.engine, list(held), self._clock.now(), why, blameless=True))

    def leave(self) -> None:
        """End the threads and leave the database; nothing is held afterwards."""
        for service in reversed(self._services):  # the watchdog first, which would start the others again
            service.stop()
        for service in self._services:
            service.join(LAST_STEPS)
        self._executor.close()
        drop_all_of_async_work()
        self._member.leave()

    def _claim(self, name: str, kwargs: Mapping[str, Any] | None, actor: str) -> Claimed:
        """Promise and claim in one transaction, so that no other instance takes the run.

        The places of groups are locked first, as in every claim, so that none waits for another in a circle.
        """
        with write_transaction(self.engine.using):
            read_limits(self.engine, waits=True)
            run = run_now(name, kwargs=kwargs, actor=actor)
            now = max(self._clock.now(), run.due_at or run.scheduled_for)
            claims = claim_waiting(self.engine, now, ahead=AT_ONCE, limit=1, run_id=run.pk)
            if not claims.runs:
                raise Refused(_why_not(self.engine, run.job), code="busy")
        return claims.runs[0]

    def _context_for(self, claimed: Claimed) -> RunContext:
        context = context_for(claimed)
        context.log = _ToldLines(context.log.limit, self._log)
        return context

    def _done(self, claimed: Claimed, outcome: Outcome) -> None:
        self._recorder.put(claimed, outcome)
        self._recording.wake()

    def _record(self) -> float:
        if self._recorder.write():
            self._changed()
        return LONGEST_WAIT


def _is_private(connection: BaseDatabaseWrapper) -> bool:
    """Whether no other thread sees what is written on the connection."""
    return connection.in_atomic_block or connection.settings_dict["NAME"] == ":memory:"


def _why_not(engine: Engine, job: Job) -> str:
    if job.group not in full_groups(engine):
        return f"{job.name!r} is busy: somebody has changed it just now."
    return (
        f"{job.name!r} cannot start now: its group {job.group!r} has as many runs as it may (SCHEDULER_GROUPS allows"
        f" {conf.GROUPS[job.group]}). Try again when one has ended, or use --enqueue to have it wait for a place."
    )


class _ToldLines(LogLines):
    """Lines of a log that are told to somebody, too, as they come."""

    __slots__ = ("_tell",)

    def __init__(self, limit: int, tell: Line) -> None:
        super().__init__(limit)
        self._tell = tell

    def append(self, line: str) -> None:
        super().append(line)
        with suppress(Exception):  # a terminal that is gone is no error of the run
            self._tell(line)
