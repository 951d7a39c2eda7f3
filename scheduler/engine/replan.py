"""Replan: plan a job with what only the database can tell of it."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import datetime
from functools import cached_property

from django.db.models import Count, F

from scheduler.engine.dependencies import ends_of
from scheduler.engine.plan import Ends, Known, Plan, planned
from scheduler.models import LONG_AGO, Job, RunLog
from scheduler.models.stored import Unreadable


class Facts:
    """What the database tells of some jobs, asked for all of them when the first one needs it."""

    def __init__(self, jobs: Sequence[Job]) -> None:
        self.jobs = jobs
        self.ids = {job.pk for job in jobs}

    @cached_property
    def waiting(self) -> dict[int, int]:
        """How many attempts are promised of each job that has `max_runs`, by their ids."""
        limited = [job for job in self.jobs if most_runs(job) is not None]
        return dict.fromkeys((job.pk for job in limited), 0) | _waiting(limited)

    @cached_property
    def ends(self) -> Ends:
        """When each of the jobs that these wait for ended last, by their names."""
        waiting = [job for job in self.jobs if job.schedule.is_dependent]
        return ends_of(waiting[0]._state.db, {name for job in waiting for name in job.schedule.parents})


_facts: ContextVar[Facts | None] = ContextVar("facts", default=None)


@contextmanager
def asked_at_once(jobs: Iterable[Job]) -> Iterator[None]:
    """Ask for what plans need to know once for all of the jobs; within the block nothing of that is written."""
    token = _facts.set(Facts(list(jobs)))
    try:
        yield
    finally:
        _facts.reset(token)


def replan(job: Job, now: datetime, *, since: datetime | None = None) -> None:
    """Plan a job in memory: from now on, or `since` an instant; see `planned`."""
    planned_again(job, now, since=since).onto(job)


def planned_again(job: Job, now: datetime, *, since: datetime | None = None) -> Plan:
    """Return the plan of a job as it would be made now."""
    return planned(Plan.of(job), job, now, Known(runs_left(job), ends_of_parents(job)), since=since)


def runs_left(job: Job, *, promised: int = 0) -> int | None:
    """Return how many further runs `max_runs` leaves, beside those `promised` just now; None: any number."""
    most = most_runs(job)
    if most is None:
        return None
    left = most - job.ended_runs - job.active_runs - promised
    return left - waiting_attempts(job) if left > 0 else left


def most_runs(job: Job) -> int | None:
    """Return `max_runs` of a job; None: any number."""
    return None if isinstance(job.policy, Unreadable) else job.policy.max_runs


def waiting_attempts(job: Job) -> int:
    """Count the attempts that are promised already."""
    known = _facts.get()
    counts = known.waiting if known is not None else {}
    return counts[job.pk] if job.pk in counts else _waiting([job]).get(job.pk, 0)


def _waiting(jobs: Sequence[Job]) -> dict[int, int]:
    """Count the attempts that are promised, by job.

    Some databases would search all rows of a job; by a sum they cannot, and take the few runs that are open.
    """
    if not jobs:
        return {}
    waiting = RunLog.objects.using(jobs[0]._state.db).waiting().filter(due_at__gt=LONG_AGO)
    owned = waiting.annotate(owner=F("job_id") + 0).filter(owner__in=[job.pk for job in jobs])
    return dict(owned.order_by().values_list("owner").annotate(Count("pk")))


def ends_of_parents(job: Job) -> Ends:
    """Return when each of the jobs that a job waits for ended last; empty for one that waits for none."""
    if not job.schedule.is_dependent:
        return {}
    known = _facts.get()
    if known is not None and job.pk in known.ids:
        return known.ends
    return ends_of(job._state.db, job.schedule.parents)
