"""Found: what there is to tell of jobs, by their rows. Reads only, with a bounded number of queries."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db.models import F, Q
from django.db.models.functions import Coalesce

from scheduler.engine.views.conditions import BROKEN
from scheduler.engine.views.expected import unmet_expectations
from scheduler.engine.views.failing import failing_jobs
from scheduler.engine.views.readable import policy_if_readable
from scheduler.models import LONG_AGO, Job, RunLog, Status, Told
from scheduler.problems import Problem

LOOKED_AT = 2000
"""Jobs of a kind; more than that are told by a later look."""
ONCE = 100
"""Of so many jobs a look tells what they missed or lost."""
NEWEST = 100
"""Rows of a job among which the run is looked for."""
FAILING, STUCK = "failing", "stuck"
SEEN = {Told.MISSED: "misses", Told.LOST: "losses"}
"""What is told once, each with its counter of jobs and of `JobWatch`."""


@dataclass(slots=True, kw_only=True)
class Found:
    """Something to tell of a job. `topic` is what it is an outage of, empty for what is told once."""

    kind: Told
    job: Job
    topic: str = ""
    key: str = ""
    since: datetime | None = None
    ends_after: datetime | None = None
    """A success after this instant ends it."""
    run: RunLog | None = None
    problem: Problem | None = None
    count: int = 0
    details: dict[str, Any] = field(default_factory=dict)


def outages(now: datetime) -> dict[str, Found]:
    """Return what is wrong with jobs now, by topic."""
    found = {one.topic: one for one in [*_failing(now), *_stuck()]}
    for one in unmet_expectations(now):
        problem, covered = Problem(one.code, one.job.name, one.values), f"{FAILING}:{one.job.pk}" in found
        if one.code == Told.SLOWER or not covered:  # that it fails is told already, and says why
            topic = f"{one.code}:{one.job.pk}"
            since, success = one.values.get("at"), one.job.last_success_at or LONG_AGO
            found[topic] = Found(
                kind=Told(one.code), job=one.job, topic=topic, since=since, ends_after=success, problem=problem
            )
    return found


def _failing(now: datetime) -> Iterator[Found]:
    broken = Job.objects.filter(BROKEN).light().order_by("pk")[:LOOKED_AT]
    counted = Job.objects.filter(consecutive_failures__gt=0, enabled=True, paused_at=None, broken_at=None)
    for job in broken:
        yield _of_failure(Told.BROKEN, job, job.broken_at, job.consecutive_failures)
    for job in failing_jobs(now):
        if job.policy.notify_after is None:
            yield _of_failure(Told.FAILED, job, job.last_finished_at, job.failed_in_a_row)
    for job in counted.light().order_by("-consecutive_failures", "pk")[:LOOKED_AT]:
        policy = policy_if_readable(job)
        after = policy.notify_after if policy else None
        if after is not None and job.consecutive_failures >= after:
            yield _of_failure(Told.FAILED, job, job.last_finished_at, job.consecutive_failures)


def _of_failure(kind: Told, job: Job, since: datetime | None, count: int) -> Found:
    return Found(kind=kind, job=job, topic=f"{FAILING}:{job.pk}", since=since, ends_after=since, count=count)


def _stuck() -> Iterator[Found]:
    """The bound on `due_at` lets the index of open runs answer."""
    runs = RunLog.objects.living().filter(due_at__gt=LONG_AGO, stuck_at__isnull=False)
    for run in runs.select_related("job").defer("log", "result", "job__state")[:LOOKED_AT]:
        yield Found(kind=Told.STUCK, job=run.job, topic=f"{STUCK}:{run.job_id}", since=run.started_at, run=run)


def told_once() -> list[Found]:
    """Return what jobs missed or lost since they were looked at last."""
    seen = {f"seen_{counter}": Coalesce(F(f"watch__{counter}"), 0) for counter in SEEN.values()}
    grew = Q(misses__gt=F("seen_misses")) | Q(losses__gt=F("seen_losses"))
    jobs: Any = Job.objects.light().annotate(**seen).filter(grew).order_by("pk")[:ONCE]
    return [one for job in jobs for one in _grown(job)]


def _grown(job: Any) -> Iterator[Found]:
    for kind, counter in SEEN.items():
        total = getattr(job, counter)
        count = total - getattr(job, f"seen_{counter}")
        if count > 0:
            yield Found(kind=kind, job=job, key=f"{kind.value}:{job.pk}:{total}", count=count)


def run_of(found: Found) -> RunLog | None:
    """Return the row that tells why: the newest of the kind among the newest of the job."""
    statuses = {Told.MISSED: (Status.MISSED,), Told.LOST: (Status.LOST,)}.get(found.kind)
    if found.run is not None or (statuses is None and not found.topic.startswith(FAILING)):
        return found.run
    rows: Iterable[RunLog] = found.job.runs.order_by("-scheduled_for", "-attempt").defer("log", "result")[:NEWEST]
    for row in rows:
        if (row.status in statuses) if statuses else _failed(row):
            return row
    return None


def _failed(row: RunLog) -> bool:
    return row.status in (Status.FAILED, Status.TIMED_OUT, Status.LOST) or row.errors > 0
