"""The next hour as a list: what starts when, how often, and how long it takes as a rule."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from operator import itemgetter
from statistics import median

from django.contrib.admin import AdminSite
from django.db.models import Q
from django.db.models.functions import Coalesce
from django.http import HttpRequest
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from scheduler.admin.allowed import jobs_for, may_read_runs, recent_runs_for
from scheduler.admin.page_context import now_of
from scheduler.admin.times import instant, relative
from scheduler.engine.views.conditions import AT_REST
from scheduler.engine.views.datetimes import lasted
from scheduler.engine.views.lately import BUSY, HOUR, due_soon
from scheduler.engine.views.upcoming import after_run, next_slot, start_of, waits_for_run
from scheduler.exceptions import ConfigurationError
from scheduler.models import RAN, Job, RunLog
from scheduler.schedules import interval_kinds

MOST = 50
SAMPLE = 20
"""So many of the newest runs of a job say how long it takes."""
MOST_STARTS = 3600


@dataclass(frozen=True, slots=True)
class Start:
    """The next start of a job; `further` others follow within the hour. `note` says what is to happen before it."""

    job: Job
    at: SafeString | str
    away: SafeString | str
    further: int
    took: str
    note: str = ""


def next_hour(site: AdminSite, request: HttpRequest) -> tuple[list[Start], bool]:
    """Return the next starts of the hour to come, one for each job, and whether there are more jobs than the list has.

    A constant number of queries. A job that runs just now has its next slot, too, or how long after its run it starts.
    """
    now = now_of(request)
    counted = Q(schedule_kind__in=interval_kinds(), next_run_at__isnull=True)  # from the end of the run that goes on
    wanted = due_soon(now) | (AT_REST & BUSY & Q(stale=False) & counted)
    due = jobs_for(site, request).filter(wanted).defer("state", "kwargs")
    jobs = list(due.order_by(Coalesce("wake_at", "next_run_at").asc(nulls_last=True), "name")[: MOST + 1])
    reads = may_read_runs(site, request)
    runs = recent_runs_for(site, request, jobs[:MOST], SAMPLE) if reads and jobs else {}
    told = (_start(job, now, lasted(usual(runs.get(job.pk, ())))) for job in jobs[:MOST])
    found = sorted(filter(None, told), key=itemgetter(0))
    return [start for _at, start in found], len(jobs) > MOST


def usual(runs: Sequence[RunLog]) -> timedelta | None:
    """Return how long half of some runs took at most, None where none of them ended."""
    took = [run.duration.total_seconds() for run in runs if run.status in RAN and run.duration is not None]
    return timedelta(seconds=median(took)) if took else None


def _start(job: Job, now: datetime, took: str) -> tuple[datetime, Start] | None:
    """Return the start of a job in the list, and when that is; None where it has none in this hour."""
    try:
        at, wait = next_slot(job, now), after_run(job)
    except (ConfigurationError, ValueError, OverflowError):
        return None
    if at is None:
        if wait is None or wait > HOUR:
            return None
        words = _("{time} after the run that goes on").format(time=lasted(wait))
        return now + wait, Start(job, "", "", 0, took, words)
    at = start_of(job, at)
    if at > now + HOUR:
        return None
    words = ""
    if waits_for_run(job):
        words = _("after this run") if at <= now else _("if the run that goes on has ended by then")
    return at, Start(job, instant(at), relative(at, now), _further(job, at, now), took, words)


def _further(job: Job, at: datetime, now: datetime) -> int:
    """Return how many slots follow the next one within the hour, as far as the schedule alone decides."""
    try:
        return 0 if job.schedule.from_completion else job.schedule.count_between(at, now + HOUR, MOST_STARTS)
    except (ConfigurationError, ValueError, OverflowError):
        return 0
