"""Dependencies: jobs that run after other jobs."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from scheduler.engine.dbtime import shared_now
from scheduler.models import UNPLANNED, Job
from scheduler.schedules import AfterJobs


def slot_after_parents(job: Job, schedule: AfterJobs) -> datetime | None:
    """Return when the last parent ended, if each ended well since the last slot of `job`; None while one is missing.

    What they did before the anchor, when the job was enabled or given this schedule, does not count.
    """
    parents = Job.objects.using(job._state.db).filter(name__in=schedule.jobs)
    ended = list(parents.values_list("last_success_at" if schedule.on == "success" else "last_outcome_at", flat=True))
    since = max(filter(None, (job.last_slot, job.anchor_at)), default=None)
    if len(ended) < len(schedule.jobs) or any(at is None or (since and at <= since) for at in ended):
        return None
    last: datetime = max(at for at in ended if at is not None)
    return last


def new_anchor(using: str, job: Job, columns: dict[str, Any]) -> dict[str, Any]:
    """Return the anchor of a job that columns enable or give a schedule after others: the ends from now on count.

    Whoever writes them sets it. At the next look, which may be seconds later, a parent may have ended.
    """
    begins = "schedule" in columns or (columns.get("enabled") and not job.enabled)
    if begins and isinstance(columns.get("schedule", job.schedule), AfterJobs):
        return {"anchor_at": shared_now(using)}
    return {}


def tell_parents(using: str, jobs: Iterable[Job]) -> None:
    """Let the parents of planned jobs know that somebody waits for them, so that only their ends cost anything.

    A parent that has just learned it may have ended unnoticed, so the jobs that wait for it look once more.
    """
    waiting = [(job.pk, job.schedule.jobs) for job in jobs if isinstance(job.schedule, AfterJobs)]
    names = {name for _, parents in waiting for name in parents}
    if names and Job.objects.using(using).filter(name__in=names, has_dependents=False).update(has_dependents=True):
        Job.objects.using(using).filter(pk__in=[pk for pk, _ in waiting]).update(next_start_at=UNPLANNED)


def wake_dependents(using: str, parents: Iterable[Job]) -> int:
    """Have the jobs that wait for `parents` planned anew; in the transaction that wrote how the parents ended."""
    return replan_dependents(using, {parent.name for parent in parents if parent.has_dependents})


def replan_dependents(using: str, names: set[str]) -> int:
    """Have the jobs that wait for jobs of these names planned anew; new jobs learn that way who waits for them."""
    if not names:
        return 0
    jobs = Job.objects.using(using).filter(problem="")  # one that is set aside stays so, whatever the others do
    waiting = jobs.filter(schedule__contains='"after_jobs"').only("pk", "schedule")
    ids = [job.pk for job in waiting if isinstance(job.schedule, AfterJobs) and names & set(job.schedule.jobs)]
    return Job.objects.using(using).filter(pk__in=ids).update(next_start_at=UNPLANNED)
