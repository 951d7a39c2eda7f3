"""Foreground: run one job now, under the same guards as in a server, and wait for its end."""

from collections.abc import Mapping
from typing import Any

from scheduler.clock import Clock
from scheduler.conf import conf
from scheduler.engine.base import Claimed, Engine
from scheduler.engine.claim_promised import claim_waiting
from scheduler.engine.control import run_now
from scheduler.engine.db.transactions import write_transaction
from scheduler.engine.limits import full_groups, read_limits
from scheduler.engine.outcome import NO_TIME
from scheduler.engine.sync.follow_code import ensure_job
from scheduler.exceptions import Refused
from scheduler.models import Job, RunLog
from scheduler.models.instance import FOR_ONE_RUN
from scheduler.runtime.attendance import Line
from scheduler.runtime.interrupt import StopRequest
from scheduler.runtime.one_run import see_through


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
    does not agree within SCHEDULER_SHUTDOWN_SECONDS is lost. Raises UnknownJob with near names, or Refused with the
    reason. Inside a transaction or on a database in memory, as in a test, where other threads would see nothing, the
    task runs in this thread and inside that transaction: nothing watches its timeout or asks it to stop.
    """

    def claim(engine: Engine, clock: Clock) -> Claimed:
        ensure_job(engine, name, clock.now())
        return _claim(engine, clock, name, kwargs, actor)

    run = see_through(claim, FOR_ONE_RUN, stop=stop, log=log)
    if run is None:
        raise Refused(f"The database answered too late; the run of {name!r} waits for the scheduler.", code="busy")
    return run


def _claim(engine: Engine, clock: Clock, name: str, kwargs: Mapping[str, Any] | None, actor: str) -> Claimed:
    """Promise and claim in one transaction, so that no other instance takes the run.

    The places of groups are locked first, as in every claim, so that none waits for another in a circle.
    """
    with write_transaction(engine.using):
        read_limits(engine, waits=True)
        run = run_now(name, kwargs=kwargs, actor=actor)
        now = max(clock.now(), run.due_at or run.scheduled_for)
        claims = claim_waiting(engine, now, ahead=NO_TIME, limit=1, run_id=run.pk)
        if not claims.runs:
            raise Refused(_why_not(engine, run.job), code="busy")
    return claims.runs[0]


def _why_not(engine: Engine, job: Job) -> str:
    if job.in_group not in full_groups(engine):
        return f"{job.name!r} is busy: it has just been changed."
    return (
        f"{job.name!r} cannot start now: its group {job.in_group!r} has as many runs as it may (SCHEDULER_GROUPS allows"
        f" {conf.GROUPS[job.in_group]}). Try again when one has ended, or use --enqueue to have it wait for a place."
    )
