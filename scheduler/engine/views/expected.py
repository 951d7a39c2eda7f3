"""Expected: jobs that have not succeeded as often, or as early, as their policy asks, and runs that take too long.

No state of a job depends on it: it is told as problems, and nothing is stopped.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache, partial
from typing import Any

from django.db.models import F, Max, OuterRef, Q, Subquery

from scheduler.conf import conf
from scheduler.engine.db.fast_read import CompiledRows
from scheduler.engine.db.one_look import in_one_look
from scheduler.engine.views.datetimes import said, zone_of_schedule
from scheduler.engine.views.deadline import missed_deadline
from scheduler.engine.views.pauses import HELD
from scheduler.exceptions import ConfigurationError
from scheduler.models import EVERYTHING, LONG_AGO, EventKind, Job, JobEvent, JobState, RunLog
from scheduler.models.job import LONG_COLUMNS

UNMET = ("not_fresh", "deadline_missed", "slower")
"""The codes of these problems, the most urgent first."""
LOOKED_AT = 1000
"""So many jobs are looked at."""
EXPECTS = ~Q(expects="")
BEGINS = (EventKind.CREATED, EventKind.ENABLED, EventKind.RESUMED)
"""What begins the time in which a success is expected."""
SLOWER = Q(watch__slow_after__lt=F("last_finished_at") - F("last_run_at"))
"""The condition on jobs whose last run took unusually long."""


@dataclass(frozen=True, slots=True)
class Unmet:
    """An expectation of a job that is not met; `code` and `values` are those of its problem."""

    job: Job
    code: str
    values: Mapping[str, Any] = field(default_factory=dict)


def unmet_expectations(now: datetime) -> list[Unmet]:
    """Return the expectations that are not met, by jobs in the order of their names. Two queries at most.

    What a person stopped is not expected to succeed. A run that takes unusually long is told also while it lives.
    """
    return in_one_look("unmet expectations", partial(_unmet_expectations, now))


def _unmet_expectations(now: datetime) -> list[Unmet]:
    jobs: list[Any] = _first_watched(Job.objects.all().db, conf.DEFAULT_GROUP).read()
    expecting = [job for job in jobs if _is_expected_to_succeed(job)]
    goes_since = _goes_since(expecting)
    unmet = {job.pk: [*_unmet(job, goes_since[job.pk], now)] for job in expecting}
    return [one for job in jobs for one in [*unmet.get(job.pk, ()), *_slower(job, now)]]


@lru_cache(maxsize=16)
def _first_watched(using: str, default_group: str) -> CompiledRows[Job]:
    """Every page of the admin and every scrape asks for them. `default_group` stands in it."""
    began = RunLog.objects.using(using).living().filter(job=OuterRef("pk")).order_by("started_at")
    columns = {
        "is_held": HELD,
        "slow_after": F("watch__slow_after"),
        "runs_since": Subquery(began.values("started_at")[:1]),
    }
    rows = watched().using(using).annotate(**columns).order_by("name")[:LOOKED_AT]
    return CompiledRows(rows, without=LONG_COLUMNS)


def watched() -> Any:
    """Return the jobs of which something is expected, or a run of which took or takes time that may be too long."""
    lives = Q(active_runs__gt=0, watch__slow_after__isnull=False)
    return Job.objects.filter(Q(EXPECTS, enabled=True, paused_at=None) | SLOWER | lives)


def _is_expected_to_succeed(job: Any) -> bool:
    if not job.is_readable or not job.enabled or job.paused_at or job.is_held:
        return False
    is_asked = job.policy.fresh is not None or job.policy.succeed_by is not None
    return is_asked and job.state_at_rest != JobState.FINISHED


def _slower(job: Any, now: datetime) -> Iterable[Unmet]:
    if not job.slow_after:
        return
    living = now - job.runs_since if job.runs_since else None
    ended = job.last_finished_at - job.last_run_at if job.last_finished_at and job.last_run_at else None
    taken = max(filter(None, (living, ended)), default=None)
    if taken and taken > job.slow_after:
        yield Unmet(job, "slower", {"time": taken, "slow_after": job.slow_after})


def _unmet(job: Job, began: datetime, now: datetime) -> Iterable[Unmet]:
    policy, since = job.policy, max(job.last_success_at or began, began)
    if policy.fresh is not None and now - since > policy.fresh:
        yield Unmet(job, "not_fresh", {"time": now - since, "fresh": policy.fresh})
    try:
        if policy.succeed_by is not None and (deadline := missed_deadline(job, began, now)):
            told = {"deadline": said(deadline, zone_of_schedule(job.schedule)), "at": deadline}
            yield Unmet(job, "deadline_missed", told)
    except (ConfigurationError, ValueError, OverflowError):
        return


def _goes_since(jobs: Sequence[Job]) -> dict[Any, datetime]:
    """Return when each job was created, enabled or resumed last, or its group was resumed."""
    events = JobEvent.objects.filter(kind__in=BEGINS).order_by()
    groups = {EVERYTHING, *(job.in_group for job in jobs)}
    asked = events.filter(Q(job__in=[job.pk for job in jobs]) | Q(job__isnull=True, name__in=groups))
    rows = asked.values_list("job_id", "name").annotate(last=Max("at")) if jobs else ()
    found: dict[Any, datetime] = {}
    for key, name, last in rows:
        place = name if key is None else key
        found[place] = max(found.get(place, LONG_AGO), last)
    places = {job.pk: (job.pk, job.in_group, EVERYTHING) for job in jobs}
    return {
        job.pk: max(job.created_at or LONG_AGO, *(found.get(place, LONG_AGO) for place in places[job.pk]))
        for job in jobs
    }
