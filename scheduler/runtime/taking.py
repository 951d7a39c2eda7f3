"""Taking: run an attempt that was handed over, in the process to which its id was sent."""

import signal
import threading
from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol

from django.db import connections

from scheduler.arguments import checked_whole
from scheduler.clock import Clock
from scheduler.conf import conf
from scheduler.engine.base import Claimed, Engine
from scheduler.engine.claim_promised import claim_waiting
from scheduler.engine.db.transactions import is_inside_a_transaction, write_transaction
from scheduler.engine.finish import Outcome, lock_with_jobs
from scheduler.engine.handover import take_back
from scheduler.engine.limits import read_limits
from scheduler.engine.outcome import NO_TIME, UNTIL_ASKED_AGAIN
from scheduler.engine.plan_basis import policy_of
from scheduler.exceptions import Refused
from scheduler.executors.inherited import drop_inherited
from scheduler.executors.sanitize import keep_tail, progress_of
from scheduler.models import RunLog, Status
from scheduler.models.instance import FOR_AN_ATTEMPT
from scheduler.models.stored import Unreadable
from scheduler.runtime.attendance import Attendance, attending
from scheduler.runtime.interrupt import StopRequest
from scheduler.runtime.one_run import is_private, see_through
from scheduler.safetext import told

LOOK_EVERY = 0.5
"""Seconds between two looks whether the process is to stop, or the time of its engine is up."""
LAST_WRITE = 2.0
"""Seconds before an engine kills the process in which the ledger is told of it."""


class Stop(Protocol):
    """Whether the process is to stop, asked again and again; a `StopRequest` is one."""

    @property
    def came(self) -> signal.Signals | None:
        """The signal that came."""
        ...


@dataclass(frozen=True, slots=True)
class Limit:
    """The time after which an engine kills the process of a call, in seconds; `words` name it."""

    seconds: float
    words: str

    @property
    def look_at(self) -> float:
        """When the ledger is told: a little before, while there is a process to do so."""
        return self.seconds - min(LAST_WRITE, self.seconds / 2)


def run_attempt(run_id: int, *, stop: StopRequest | None = None) -> RunLog | None:
    """Claim an attempt that was handed over, run it to its end, and return its row. None where it is not to be run.

    That is so when its id comes a second time or too late, when it was cancelled, or when its job or its group has no
    place for it just now; then it is handed over again a little later. While it runs, this process is an instance like
    any other, one for all attempts that it runs at the same time: what guards a run here guards this one. When `stop`
    comes, the run is asked to stop; then, or when it does not within SCHEDULER_SHUTDOWN_SECONDS, it is lost, and
    another process begins it again. Raises Refused where the scheduler would not start either, and InvalidOption for an
    id that is no whole number.
    """
    return take(run_id, stop=stop, patience=conf.SHUTDOWN_SECONDS)


def take(run_id: int, *, stop: Stop | None = None, patience: float, limit: Limit | None = None) -> RunLog | None:
    """Do what `run_attempt` does for an engine that calls it, which waits `patience` seconds for a run that is to stop.

    `limit` is the time after which the engine ends this process: a run that reaches it has timed out.
    """
    checked_whole("run_id", run_id)
    using = Engine().using
    _refuse_inside_a_transaction(using)
    drop_inherited()
    _reconnect(using)
    if not RunLog.objects.using(using).handed_over().filter(pk=run_id).exists():
        return None
    if is_private(connections[using]):
        return see_through(lambda engine, clock: _claim(engine, clock, run_id), FOR_AN_ATTEMPT, stop=None, log=str)
    with attending() as (here, places):
        claimed = here.begin(lambda engine, clock: _claim(engine, clock, run_id), places=places)
        if claimed is None:
            return None
        _Watch(here, claimed, stop or StopRequest(), patience, limit).wait()
    _reconnect(using)
    return RunLog.objects.using(using).select_related("job").get(pk=run_id)


def _refuse_inside_a_transaction(using: str) -> None:
    """Raise Refused where others would not see the claim before a transaction ends, but for the one around a test."""
    if is_inside_a_transaction(using):
        raise Refused("An attempt is claimed and committed at once: call this outside of transaction.atomic().")


def _reconnect(using: str) -> None:
    """Drop a connection that the server has closed: engines keep a process idle for long."""
    connection = connections[using]
    if connection.connection is not None and not connection.in_atomic_block and not connection.is_usable():
        connection.close()


def _claim(engine: Engine, clock: Clock, run_id: int) -> Claimed | None:
    """Claim it under the condition of every claim. The places of groups are locked first, as in each."""
    with write_transaction(engine.using):
        read_limits(engine, waits=True)
        claims = claim_waiting(engine, clock.now(), ahead=NO_TIME, limit=1, run_id=run_id)
        if not claims.runs and lock_with_jobs(engine, [run_id]):  # another transaction may have had the rows
            claims = claim_waiting(engine, clock.now(), ahead=NO_TIME, limit=1, run_id=run_id)
        if not claims.runs:
            take_back(engine, clock.now(), after=_until_asked_again(engine, run_id), pk=run_id)
    return claims.runs[0] if claims.runs else None


def _until_asked_again(engine: Engine, run_id: int) -> timedelta:
    """Return when an attempt without a place here is handed over once more: a job may want that sooner."""
    run = RunLog.objects.using(engine.using).handed_over().filter(pk=run_id).select_related("job").first()
    if run is None or isinstance(run.job.policy, Unreadable):
        return UNTIL_ASKED_AGAIN
    return min(UNTIL_ASKED_AGAIN, policy_of(run.job).handover_timeout)


class _Watch:
    """Waits for the end of a run, and sees to what would end it before."""

    def __init__(self, here: Attendance, claimed: Claimed, stop: Stop, patience: float, limit: Limit | None) -> None:
        self._here, self._claimed, self._stop, self._patience, self._limit = here, claimed, stop, patience, limit
        self._run_id = claimed.run.pk
        self._clock = here.clock
        self._began = self._clock.monotonic()
        self._asked_at: float | None = None
        self._closed = False
        self._changed = threading.Condition()

    def wait(self) -> None:
        """Return when the run has ended, or has been closed; its call may go on then."""
        with self._here.heard_by(self._wake):
            try:
                while not self._is_over():
                    self._look()
                    self._rest()
            except BaseException:  # this process is made to end in the middle of it
                self._here.give_up(self._run_id, "its process was ended")
                raise

    def _rest(self) -> None:
        try:
            with self._changed:
                if not self._is_over():
                    self._clock.wait(self._changed, LOOK_EVERY)
        except Exception as error:  # the engine raises into this thread that the time it gives is up
            self._time_out(error)

    def _is_over(self) -> bool:
        return self._closed or self._here.is_over(self._run_id)

    def _look(self) -> None:
        now = self._clock.monotonic()
        if self._stop.came is not None and self._asked_at is None:
            self._here.ask_to_stop(self._run_id, "shutdown")
            self._asked_at = now
        elif self._asked_at is not None and now - self._asked_at >= self._patience:
            self._closed = True
            self._here.give_up(self._run_id, "its process was stopped")
        elif self._limit is not None and now - self._began >= self._limit.look_at:
            self._end_by(self._limit)  # and wait on: the engine ends the call

    def _time_out(self, error: Exception) -> None:
        living = self._here.living(self._run_id)
        if living is not None:
            living.context.log.append(f"Asked to stop by {type(error).__name__}: {told(error)}")
            living.context.timed_out = True
            living.stop("timeout")

    def _end_by(self, limit: Limit) -> None:
        living = self._here.living(self._run_id)
        if living is None:
            return
        living.stop("timeout")
        context, run, now = living.context, self._claimed.run, self._clock.now()
        self._limit = None
        self._here.close(
            run,
            Outcome(
                status=Status.TIMED_OUT,
                started_at=run.started_at or now,
                finished_at=max(now, run.started_at or now),
                error=f"Timed out by {limit.words}, which ends its process.",
                log=keep_tail(context.log.text(), context.log.limit),
                progress=progress_of(context),
            ),
        )

    def _wake(self) -> None:
        with self._changed:
            self._changed.notify_all()
