"""The next hour as a list: what starts when, how often, and how long it takes as a rule."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from statistics import median

from django.contrib.admin import AdminSite
from django.http import HttpRequest
from django.utils.safestring import SafeString

from scheduler.admin.allowed import jobs_for, may_read_runs, recent_runs_for
from scheduler.admin.page_context import now_of
from scheduler.admin.times import instant, relative
from scheduler.engine.views.lately import HOUR, due_soon
from scheduler.engine.views.upcoming import slots_to_come
from scheduler.exceptions import ConfigurationError
from scheduler.models import RAN, Job, RunLog
from scheduler.schedules.duration import length_words

MOST = 50
SAMPLE = 20
"""So many of the newest runs of a job say how long it takes."""
MOST_STARTS = 3600


@dataclass(frozen=True, slots=True)
class Start:
    """The next start of a job; `further` others follow within the hour."""

    job: Job
    at: SafeString
    away: SafeString
    further: int
    took: str


def next_hour(site: AdminSite, request: HttpRequest) -> tuple[list[Start], bool]:
    """Return the next starts of the hour to come, one for each job, and whether there are more jobs than the list has.

    A constant number of queries.
    """
    now = now_of(request)
    due = jobs_for(site, request).filter(due_soon(now)).defer("state", "kwargs").order_by("wake_at", "name")
    jobs = list(due[: MOST + 1])
    reads = may_read_runs(site, request)
    runs = recent_runs_for(site, request, jobs[:MOST], SAMPLE) if reads and jobs else {}
    found = []
    for job in jobs[:MOST]:
        at = next(iter(_slots(job, now)), None)
        if at is not None:
            took = length_words(usual(runs.get(job.pk, ())))
            found.append(Start(job, instant(at), relative(at, now), _further(job, at, now), took))
    return found, len(jobs) > MOST


def usual(runs: Sequence[RunLog]) -> timedelta | None:
    """Return how long half of some runs took at most, None where none of them ended."""
    took = [run.duration.total_seconds() for run in runs if run.status in RAN and run.duration is not None]
    return timedelta(seconds=median(took)) if took else None


def _slots(job: Job, now: datetime) -> list[datetime]:
    try:
        return slots_to_come(job, 1, now)
    except (ConfigurationError, ValueError, OverflowError):
        return []


def _further(job: Job, at: datetime, now: datetime) -> int:
    """Return how many slots follow the next one within the hour, as far as the schedule alone decides."""
    try:
        return 0 if job.schedule.from_completion else job.schedule.count_between(at, now + HOUR, MOST_STARTS)
    except (ConfigurationError, ValueError, OverflowError):
        return 0
