"""Handover: promised attempts that are kept for an executor elsewhere, until a process claims them there.

`due_at` of such an attempt is when it is handed over: when its slot comes, and again when no process has taken it in
time. So the index of due attempts finds what is lost on the way, and no timer runs for it.
"""

from datetime import datetime, timedelta
from typing import Any

from django.db.models import QuerySet

from scheduler.engine.base import Engine
from scheduler.engine.db.transactions import write_transaction
from scheduler.engine.plan_basis import policy_of
from scheduler.models import Job, RunLog
from scheduler.models.run import AT_EXECUTOR

MOST_PROMISED = 500
"""Slots of one executor that one pass promises."""


def is_handed_over(engine: Engine, job: Job) -> bool:
    """Whether this process hands the runs of a job over, and does not start them."""
    return job.executor in engine.handovers


def jobs_of(engine: Engine, jobs: QuerySet[Job], executor: str) -> QuerySet[Job]:
    """Choose the jobs of an executor to which runs are handed over; without a name, those that are started here."""
    if executor:
        return jobs.filter(executor=executor)
    return jobs.exclude(executor__in=engine.handovers) if engine.handovers else jobs


def attempts_of(engine: Engine, runs: QuerySet[RunLog], executor: str) -> QuerySet[RunLog]:
    """Choose promised attempts in the same way."""
    if executor:
        return runs.filter(job__executor=executor)
    return runs.exclude(job__executor__in=engine.handovers) if engine.handovers else runs


def keep(job: Job, run: RunLog, at: datetime) -> None:
    """Promise a run for `at` instead of starting it. It holds its place of the job, as a postponed attempt does.

    A run that waits while its job is stopped holds none: nothing would be behind the mark.
    """
    run.due_at, run.reason = at, f"{AT_EXECUTOR}{job.executor}"
    if not run.cause.waits:
        job.postponed_until = max(filter(None, (job.postponed_until, at)))


def hand_over(engine: Engine, job: Job, run: RunLog, now: datetime) -> None:
    """Note that this process hands an attempt over now, and when it will be again if no process takes it.

    One that was handed over before is stuck since then.
    """
    run.stuck_at = run.stuck_at or run.handed_at
    run.handed_at, run.instance_id = now, engine.instance_id
    keep(job, run, now + policy_of(job).handover_timeout)


def taken(job: Job, run: RunLog, now: datetime) -> None:
    """Note that an attempt starts. What waits until it would be handed over again looks now, and finds it running."""
    if run.handed_at is not None and job.wake_at == job.postponed_until:
        job.wake_at = max(now, job.next_run_at or now)
    run.handed_at = run.stuck_at = None


def take_back(engine: Engine, now: datetime, *, after: timedelta = timedelta(0), **which: Any) -> int:
    """Have attempts that no process has taken handed over once more, `after` some time; returns how many.

    `which` are conditions on them. One that was sent all the same is sent twice, which starts it once.
    """
    with write_transaction(engine.using):
        kept = RunLog.objects.using(engine.using).handed_over().filter(**which)
        return kept.update(due_at=now + after, handed_at=None, stuck_at=None, instance_id=None)
