"""Problems of jobs, each by name, and the figures that health tells. A constant number of queries."""

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any

from django.db.models import Count, Q, QuerySet, Value

from scheduler.conf import conf
from scheduler.engine.base import Engine
from scheduler.engine.db.fast_read import SOME_INSTANT, CompiledQuery
from scheduler.engine.limits import full_groups
from scheduler.engine.mend.miscounts import miscounts
from scheduler.engine.views.conditions import BROKEN, IN_STATE, INVALID, stuck_jobs
from scheduler.engine.views.expected import UNMET, Unmet, watched
from scheduler.engine.views.failing import candidates
from scheduler.engine.views.overdue import (
    OVERDUE_AFTER,
    TASKS_OVERDUE_AFTER,
    overdue,
    overdue_jobs,
    overdue_tasks,
    perhaps_overdue,
)
from scheduler.models import Job, JobState
from scheduler.models.carriers import CARRIERS
from scheduler.problems.base import Problem, cut
from scheduler.registry import registry

NAMED = 10
"""So many jobs of a kind are named; the others are counted."""

ORPHANED = IN_STATE[JobState.ORPHANED]
COUNTED = {
    "total": ~CARRIERS,
    "carriers": CARRIERS,
    "running": IN_STATE[JobState.RUNNING],
    "broken": BROKEN,
    "paused": IN_STATE[JobState.PAUSED] & ~CARRIERS,
    "orphaned": ORPHANED,
    "invalid": INVALID,
    "overdue": perhaps_overdue(SOME_INSTANT),
    "with_overdue_tasks": CARRIERS & Q(pk__in=overdue_tasks(SOME_INSTANT).values("job")),
    "stuck": Q(pk__in=stuck_jobs()),
    "failed_last": Q(pk__in=candidates().order_by().values("pk")),
    "watched": Q(pk__in=watched().order_by().values("pk")),
}
"""The conditions on jobs of which it is told how many there are; `SOME_INSTANT` stands for now."""


def counted(now: datetime) -> dict[str, int]:
    """Return how many jobs there are of each kind that is told. One query, and two more where some may be overdue and
    a group is full."""
    (row,) = _counts(Engine().using, conf.DEFAULT_GROUP).rows(now - OVERDUE_AFTER, now - TASKS_OVERDUE_AFTER)
    found = dict(zip(COUNTED, row[1:], strict=True))
    if found["overdue"] and full_groups(Engine()):
        found["overdue"] = Job.objects.filter(overdue(now)).count()
    return found


@lru_cache(maxsize=16)
def _counts(using: str, default_group: str) -> CompiledQuery:
    """Every page of the admin, every scrape and every question about health asks this, and Django takes longer to
    compile it than a database to answer. `default_group` stands in it."""
    counts = {name: Count("pk", filter=condition) for name, condition in COUNTED.items()}
    rows = Job.objects.using(using).order_by().values(tag=Value("jobs")).annotate(**counts)
    return CompiledQuery(rows, SOME_INSTANT - OVERDUE_AFTER, SOME_INSTANT - TASKS_OVERDUE_AFTER)


def stuck() -> list[Job]:
    """Return the jobs with a stuck run, as far as they are named."""
    return list(Job.objects.filter(pk__in=stuck_jobs()).order_by("name").only("name", "source"))


def of_jobs(
    counts: dict[str, int], stuck: Sequence[Job], failing: Sequence[Job], unmet: Sequence[Unmet], now: datetime
) -> Iterator[Problem]:
    """Yield what is wrong with jobs; which are stuck, failing or not as expected is known already."""
    jobs = Job.objects.order_by("name")
    if counts["broken"]:
        yield from _named("broken", jobs.filter(BROKEN), counts["broken"], _failures)
    yield from _few("stuck", [(job.name, {}) for job in stuck], shown=[job.shown_name for job in stuck])
    if counts["overdue"]:
        yield from _named("overdue", overdue_jobs(now), counts["overdue"], lambda job: {"time": _late(job, now)})
    yield from _few("failing", [(job.name, _outcome(job)) for job in failing])
    for code in UNMET:
        yield from _few(code, [(one.job.name, dict(one.values)) for one in unmet if one.code == code])
    if counts["invalid"]:
        yield from _named("invalid", jobs.filter(INVALID), counts["invalid"], lambda job: {"error": cut(job.problem)})
    yield from _few("miscounted", [(one.job, {"active": one.active, "living": one.living}) for one in miscounts()])
    if counts["orphaned"]:
        yield from _of_orphans(jobs.filter(ORPHANED), counts["orphaned"])


def _of_orphans(orphans: QuerySet[Job], count: int) -> Iterator[Problem]:
    """Those whose module failed here are out of work against the will of the code; the others may be meant."""
    failed, caused = Q(source__in=list(registry.failures)), 0
    if registry.failures:
        caused = orphans.filter(failed).count()
        yield from _named("orphaned_by_module", orphans.filter(failed), caused, lambda job: {"module": job.source})
    yield from _named("orphaned", orphans.exclude(failed), count - caused, lambda job: {})


def _named(code: str, jobs: QuerySet[Job], count: int, values: Callable[[Job], dict[str, Any]]) -> Iterator[Problem]:
    if count <= 0:
        return
    columns = ("name", "source", "problem", "wake_at", "consecutive_failures")
    yield from (Problem(code, job.name, values(job)) for job in jobs.only(*columns)[:NAMED])
    if count > NAMED:
        yield Problem(code, count=count - NAMED, rest=True)


def _few(code: str, found: Sequence[tuple[str, dict[str, Any]]], *, shown: Sequence[str] = ()) -> Iterator[Problem]:
    for place, (name, values) in enumerate(found[:NAMED]):
        told = shown[place] if shown else name
        yield Problem(code, name, values, shown=told if told != name else "")
    if len(found) > NAMED:
        yield Problem(code, count=len(found) - NAMED, rest=True)


def _late(job: Any, now: datetime) -> timedelta:
    late: timedelta = now - job.overdue_since
    return late


def _failures(job: Job) -> dict[str, Any]:
    return {"failures": job.consecutive_failures}


def _outcome(job: Any) -> dict[str, Any]:
    return {"status": job.last_status, "failures": job.failed_in_a_row}
