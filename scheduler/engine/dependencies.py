"""Dependencies: jobs that run after other jobs."""

from collections.abc import Iterable
from typing import Any

from django.db import transaction
from django.db.models import Q, QuerySet

from scheduler.engine.db.shared_time import shared_now
from scheduler.models import Job
from scheduler.models.job_columns import UNABLE, to_replan
from scheduler.models.primary import lock_in_order
from scheduler.schedules import dependent_kinds


def ends_of(using: str | None, names: Iterable[str]) -> dict[str, dict[bool, Any]]:
    """Return when jobs last succeeded (True), and when they last ended, by their names."""
    rows = Job.objects.using(using).filter(name__in=list(names))
    ends = rows.values_list("name", "last_success_at", "last_outcome_at")
    return {name: {True: success, False: outcome} for name, success, outcome in ends}


def new_anchor(using: str, job: Job, columns: dict[str, Any]) -> dict[str, Any]:
    """Return the anchor of a job that columns enable or give a schedule after others: the ends from now on count.

    Set it in the same write: by the next tick, which may be seconds later, a parent may have ended.
    """
    begins = "schedule" in columns or (columns.get("enabled") and not job.enabled)
    if begins and (columns.get("schedule") or job.schedule).is_dependent:
        return {"anchor_at": shared_now(using)}
    return {}


def tell_parents(using: str, jobs: Iterable[Job]) -> None:
    """Mark the parents of planned jobs as having dependents, so that only their ends cost anything.

    A parent that has just been marked may have ended unnoticed, so the jobs that wait for it look once more.
    """
    waiting = [(job.pk, job.schedule.parents) for job in jobs if job.schedule.is_dependent and not job.is_set_aside]
    names = {name for _, parents in waiting for name in parents}
    if names and _write(Job.objects.using(using).filter(name__in=names, has_dependents=False), has_dependents=True):
        _write(Job.objects.using(using).filter(pk__in=[pk for pk, _ in waiting]), **to_replan())


def wake_dependents(using: str, parents: Iterable[Job]) -> int:
    """Replan the jobs that wait for `parents`, in the transaction that wrote how the parents ended."""
    return replan_dependents(using, {parent.name for parent in parents if parent.has_dependents})


def replan_dependents(using: str, names: set[str]) -> int:
    """Replan the jobs that wait for jobs of these names; this also marks new jobs as having dependents."""
    if not names:
        return 0
    # One that is set aside stays so, whatever the others do. One that no process can run now is due, and tried again.
    jobs = Job.objects.using(using).filter(Q(problem="") | Q(problem__startswith=UNABLE))
    waiting = jobs.filter(schedule_kind__in=dependent_kinds()).only("pk", "schedule")
    ids = [job.pk for job in waiting if job.schedule.is_dependent and names & set(job.schedule.parents)]
    return _write(Job.objects.using(using).filter(pk__in=ids), **to_replan())


def _write(jobs: QuerySet[Job], **columns: Any) -> int:
    """Write columns of many jobs, whose rows others may be locking just now."""
    with transaction.atomic(using=jobs.db, savepoint=False):
        return jobs.update(**columns) if lock_in_order(jobs) else 0
