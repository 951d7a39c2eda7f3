"""Postponed: attempts that put themselves off, and hold a place of their job like a living run until they start."""

from datetime import datetime, timedelta

from django.db.models import QuerySet

from scheduler.conf import conf
from scheduler.engine.base import Engine
from scheduler.models import Job, RunLog, Status, Trigger
from scheduler.models.job_columns import to_replan

A_MOMENT = timedelta(seconds=1)
"""After so long an attempt that is due, and has not started, is looked at again."""


def held_places(job: Job, *, paused: bool = False) -> int:
    """Count the places of a job that postponed attempts hold; asks the database only where one may.

    While the job is `paused`, by itself or with others, only what was started by hand goes on and so holds one.
    """
    if job.postponed_until is None:
        return 0
    return (holding(job).filter(trigger=Trigger.MANUAL) if paused else holding(job)).count()


def look_again_at(job: Job, now: datetime) -> datetime:
    """Return when to look again at what a postponed attempt keeps from starting.

    That is later than what is claimed ahead: else it would be due again at once, in pass after pass.
    """
    return max(job.postponed_until or now, now + timedelta(seconds=conf.CLAIM_AHEAD) + A_MOMENT)


def holds_a_place(job: Job, run: RunLog) -> bool:
    """Whether a waiting attempt put itself off, and so has the place that it needs to start."""
    return job.postponed_until is not None and holding(job).filter(pk=run.pk).exists()


def held_until(job: Job) -> datetime | None:
    """Return when the last of the postponed attempts of a job is due, None where there is none."""
    if job.postponed_until is None:
        return None
    # No maximum: on SQLite its value would not be read as that of the column is.
    last: datetime | None = holding(job).order_by("-due_at").values_list("due_at", flat=True).first()
    return last


def holding(job: Job) -> QuerySet[RunLog]:
    return RunLog.objects.using(job._state.db).postponed().filter(job=job)


def let_go(engine: Engine, run: RunLog, now: datetime) -> None:
    """An attempt was cancelled while it waited. Where it held a place, its job and what waited for that are due now.

    The mark stays: the next look finds no attempt behind it, and writes off the slots that passed up to now. A broken
    job whose probe was kept for an executor had no plan but its end, and is planned again.
    """
    job = Job.objects.using(engine.using).get(pk=run.job_id)
    if job.postponed_until is None or (last := held_until(job)) == job.postponed_until:
        return
    waiting = job.runs.using(engine.using).waiting().filter(due_at=job.postponed_until).values_list("pk", flat=True)
    RunLog.objects.using(engine.using).filter(pk__in=list(waiting), status=Status.PENDING).update(due_at=now)
    jobs = Job.objects.using(engine.using).filter(pk=job.pk)
    until = min(now, job.postponed_until) if last is None else last
    jobs.filter(wake_at=job.postponed_until).update(wake_at=max(until, job.next_run_at or until))
    if last is None:
        idle = jobs.filter(broken_at__isnull=False, wake_at=None, active_runs=0, stale=False)
        idle.update(**to_replan(now))
    jobs.update(postponed_until=until)
