"""Usual: how long jobs usually take, measured now and then, so that a look at all of them costs one query."""

from collections.abc import Iterable
from datetime import datetime, timedelta

from django.db.models import Exists, F, OuterRef, Q

from scheduler.engine.db.transactions import write_transaction
from scheduler.engine.views.stats import percentile
from scheduler.models import Job, JobWatch, RunLog, Status

JOBS_AT_ONCE = 50
NEWEST = 100
"""Rows of a job that are looked at; its successes among them say what is usual."""
ENOUGH = 20
"""So many successes tell what is usual."""
TIMES, LEAST_MORE = 2, timedelta(seconds=5)
"""A run is slow that takes over twice the 95th percentile, and at least so much longer than that."""
MEASURED_FOR = timedelta(hours=1)
"""What was measured holds for so long, however often the job runs."""


def measure_some(using: str, now: datetime) -> int:
    """Measure jobs that have run since they were measured, the longest ago first; returns how many."""
    unmeasured = Q(watch__measured_at=None) | Q(
        watch__measured_at__lt=F("last_finished_at"), watch__measured_at__lte=now - MEASURED_FOR
    )
    jobs = Job.objects.using(using).filter(unmeasured, last_finished_at__isnull=False, successes__gte=ENOUGH)
    keys = list(
        jobs.order_by(F("watch__measured_at").asc(nulls_first=True)).values_list("pk", flat=True)[:JOBS_AT_ONCE]
    )
    for key in keys:
        _note(using, key, slow_after=slow_after(_durations(using, key)), measured_at=now)
    return len(keys)


def forget_deleted(using: str) -> int:
    """Remove what was measured of jobs that are gone; returns how many."""
    gone = JobWatch.objects.using(using).filter(~Exists(Job.objects.using(using).filter(pk=OuterRef("pk"))))
    return gone.delete()[0] if gone.exists() else 0


def slow_after(durations: Iterable[timedelta]) -> timedelta | None:
    """Return how long a run may take; None where too few have succeeded to tell."""
    ascending = sorted(durations)
    usual = percentile(ascending, 95) if len(ascending) >= ENOUGH else None
    return None if usual is None else max(TIMES * usual, usual + LEAST_MORE)


def _durations(using: str, key: int) -> list[timedelta]:
    runs = RunLog.objects.using(using).filter(job=key).order_by("-scheduled_for", "-attempt")
    rows = runs.values_list("status", "started_at", "finished_at")[:NEWEST]
    return [ended - began for status, began, ended in rows if status == Status.SUCCEEDED and began and ended]


def _note(using: str, key: int, **columns: object) -> None:
    watches = JobWatch.objects.using(using)
    with write_transaction(using):
        if not watches.filter(pk=key).update(**columns):
            watches.bulk_create([JobWatch(pk=key, **columns)], ignore_conflicts=True)
