"""Day totals: count what retention removes, in the transaction that removes it, and compare that with what is left.

A day of a job is its totals and the rows that are left, never one of them twice: totals have only rows that are gone.
Ends of runs therefore cost nothing more, and backfills, retries and late ends of old slots need no correction.
"""

import logging
from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timedelta

from django.db.models import Count, Exists, Min, OuterRef, Sum

from scheduler.engine.db.add import add_rows
from scheduler.engine.db.tally import RUNS, SLOTS, TIMED, bucket_of, microseconds
from scheduler.engine.db.transactions import write_transaction
from scheduler.engine.views.datetimes import local
from scheduler.models import DayTotal, Job, RunLog, Status
from scheduler.models.day_total import DAY_AMOUNTS, DAY_KEY, DAY_TOOK_MS
from scheduler.models.primary import locked
from scheduler.models.run import COUNTERS
from scheduler.models.tally import NOT_MEASURED, WITH_ERRORS

logger = logging.getLogger("scheduler")

KEPT_FOR = timedelta(days=400)
COMPARED_AT_ONCE = 20
"""Jobs whose totals one round of the housekeeper compares."""
COLUMNS = ("job_id", "scheduled_for", "status", "errors", "coalesced", "started_at", "finished_at")

Key = tuple[int, str, str, int]


def total_days(using: str, ids: Sequence[int], now: datetime) -> None:
    """Count the rows that the caller deletes in this transaction, but for those of days that are not kept.

    They are locked: of two processes that prune the same rows, the second finds none left to count.
    """
    rows = RunLog.objects.using(using).filter(pk__in=ids, scheduled_for__gte=now - KEPT_FOR).only(*COLUMNS)
    totals: dict[Key, list[int]] = {}
    for run in locked(rows.order_by("pk")):
        if run.status in RUNS or run.status in SLOTS:
            key, count, took = _counted(run)
            amounts = totals.setdefault(key, [0, 0])
            amounts[0] += count
            amounts[1] += took
    add_rows(using, DayTotal, DAY_KEY, DAY_AMOUNTS, [(*key, *totals[key]) for key in sorted(totals)])


def _counted(run: RunLog) -> tuple[Key, int, int]:
    status, took, within = str(run.status), 0, NOT_MEASURED
    if status in TIMED and run.started_at is not None and run.finished_at is not None:
        took = microseconds(run.started_at, run.finished_at)
        within = bucket_of(DAY_TOOK_MS, took)
    count = 1 + run.coalesced if status in SLOTS else 1
    if status == Status.SUCCEEDED and run.errors:
        status = WITH_ERRORS
    return (run.job_id, local(run.scheduled_for).date().isoformat(), status, within), count, took


def forget_days(using: str, now: datetime) -> None:
    """Remove the totals of days that no picture shows, and of jobs that are gone."""
    totals, jobs = DayTotal.objects.using(using), Job.objects.using(using)
    for old in (
        totals.filter(day__lt=(now - KEPT_FOR).date()),
        totals.filter(~Exists(jobs.filter(pk=OuterRef("job_id")))),
    ):
        if old.exists():
            old.delete()


def compare_some(using: str, after: int) -> int:
    """Compare the totals of the next jobs with their counters and the rows that are left; returns the last one's id, 0
    at the end.

    A job counts for ever, so its totals and its rows are at most what it has counted. They are more where a dump or a
    statement brought rows back that had been counted as gone: the totals of the days of these rows are dropped.
    """
    totals = DayTotal.objects.using(using).filter(job_id__gt=after)
    ids = list(totals.order_by("job_id").values_list("job_id", flat=True).distinct()[:COMPARED_AT_ONCE])
    for job in Job.objects.using(using).filter(pk__in=ids).only("name", *COUNTERS.values()).order_by("pk"):
        if _too_many(using, job):
            _mend(using, job.pk)
    return ids[-1] if len(ids) == COMPARED_AT_ONCE else 0


def _mend(using: str, pk: int) -> None:
    """Compare once more while no other process changes the job or prunes it, and drop what is counted twice."""
    with write_transaction(using):
        for job in locked(Job.objects.using(using).filter(pk=pk)):
            for status in _too_many(using, job):
                rows = RunLog.objects.using(using).filter(job=job, status=status, due_at__isnull=True)
                first = rows.aggregate(first=Min("scheduled_for"))["first"]
                names = [status, WITH_ERRORS] if status == Status.SUCCEEDED else [status]
                totals = DayTotal.objects.using(using).filter(job_id=pk, status__in=names)
                (totals.filter(day__gte=local(first).date()) if first else totals).delete()
                text = "The totals of days of job %r counted runs as gone that its run log has: they are dropped"
                logger.warning(text, job.name, extra={"action": "day_totals_mended", "job": job.name})


def _too_many(using: str, job: Job) -> list[str]:
    totals = DayTotal.objects.using(using).filter(job_id=job.pk).order_by()
    found: Counter[str] = Counter()
    for status, count in totals.values_list("status").annotate(Sum("count")):
        found[str(Status.SUCCEEDED) if status == WITH_ERRORS else status] += count
    rows = RunLog.objects.using(using).filter(job=job, status__in=[*found], due_at__isnull=True).order_by()
    for status, count, more in rows.values_list("status").annotate(Count("pk"), Sum("coalesced")):
        found[status] += count + (more if status in SLOTS else 0)
    return sorted(status for status, count in found.items() if count > getattr(job, COUNTERS[status]))
