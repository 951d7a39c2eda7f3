"""Tallies: the counters of the metrics are compared with those of the jobs, and those of deleted jobs are put together.

Both are raised in one transaction. They differ where a process of the release before wrote an end, which counts on the
job only, and where statements in SQL or a restored table changed one of them.
"""

import logging
from collections.abc import Collection, Sequence
from typing import Any

from django.db.models import Exists, OuterRef, QuerySet, Sum

from scheduler.conf import conf
from scheduler.engine.base import Engine
from scheduler.engine.db.add import add_rows
from scheduler.engine.db.transactions import write_transaction
from scheduler.engine.views.tallies import is_of_other, last_with_label, within_border
from scheduler.models import Job, Status, Tally
from scheduler.models.primary import locked
from scheduler.models.run import COUNTERS
from scheduler.models.tally import AMOUNTS, GONE, GONE_AND_FOLDED, KEY, LAST_WITH_LABEL, NOT_MEASURED, WITH_ERRORS
from scheduler.safetext import counted

logger = logging.getLogger("scheduler")

FOLDED_AT_ONCE = 500
"""Deleted jobs whose counters one sweep puts together."""
UNKNOWN = ""
"""The cause of what was counted by none of ours."""


def mend_tallies(engine: Engine, page: Sequence[Job], after: int, last: int) -> int:
    """Count what the jobs have counted and their tallies lack; returns for how many jobs. Nothing is counted back.

    `page` has all jobs behind the id `after`, up to `last` where that is not 0. What else is counted there is of jobs
    that are gone, or that are new.
    """
    _keep_border(engine, len(page), is_all=not after + last)
    between = Tally.objects.using(engine.using).filter(job_id__gt=after, **({"job_id__lte": last} if last else {}))
    summed = _summed(between)
    if others := {job_id for job_id, _ in summed}.difference(job.pk for job in page):
        _fold(engine, sorted(others)[:FOLDED_AT_ONCE])
    lacking = [job.pk for job in page if _lacks(job, summed)]
    return _count_lacking(engine, lacking) if lacking else 0


def _keep_border(engine: Engine, count: int, *, is_all: bool) -> None:
    """Keep the id of the last job with a label, once there are more jobs than labels. It never moves up.

    `count` jobs are known; if these are all, no query is needed to see that each has a label.
    """
    most = conf.METRICS_MAX_JOBS
    if is_all and count <= most:
        return
    jobs, tallies = Job.objects.using(engine.using), Tally.objects.using(engine.using)
    around = list(jobs.order_by("pk").values_list("pk", flat=True)[most - 1 : most + 1]) if most else []
    if len(around) < 2:
        return
    row = {"job_id": LAST_WITH_LABEL, "status": "", "cause": str(most), "took_within": 0, "late_within": 0}
    kept = tallies.filter(**row).values_list("count", flat=True).first()
    if kept is None or kept > around[0]:
        with write_transaction(engine.using):
            tallies.get_or_create(**row, defaults={"count": around[0]})
            tallies.filter(**row, count__gt=around[0]).update(count=around[0])


def _count_lacking(engine: Engine, ids: Collection[int]) -> int:
    """Compare the jobs again while no end of theirs can be written, and count what is lacking."""
    with write_transaction(engine.using):
        jobs = list(locked(Job.objects.using(engine.using).filter(pk__in=ids).order_by("pk")))
        summed = _summed(Tally.objects.using(engine.using).filter(job_id__in=ids))
        add_rows(engine.using, Tally, KEY, AMOUNTS, [row for job in jobs for row in _lacks(job, summed)])
    names = sorted(str(job.name) for job in jobs if _lacks(job, summed))
    if names:
        text = "The metrics of %s lacked what was counted of them, %r first: they have it now"
        logger.warning(text, counted(len(names), "job"), names[0], extra={"action": "tallies_mended", "job": names[0]})
    return len(names)


Summed = dict[tuple[int, str], int]
Key = tuple[int, str, str, int, int]


def _summed(rows: QuerySet[Tally]) -> Summed:
    found: Summed = {}
    for job_id, status, count in rows.order_by().values_list("job_id", "status").annotate(Sum("count")):
        key = job_id, str(Status.SUCCEEDED) if status == WITH_ERRORS else status
        found[key] = found.get(key, 0) + count
    return found


def _lacks(job: Job, summed: Summed) -> list[tuple[Any, ...]]:
    """Return the rows of counters that bring the tallies of a job up to what it has counted."""
    lacking = {status: getattr(job, name) - summed.get((job.pk, str(status)), 0) for status, name in COUNTERS.items()}
    found = ((str(status), count) for status, count in lacking.items() if count > 0)
    return [(job.pk, status, UNKNOWN, NOT_MEASURED, NOT_MEASURED, count, 0, 0) for status, count in sorted(found)]


def _fold(engine: Engine, ids: Collection[int]) -> None:
    """Put the counters of deleted jobs together: they would grow with each job there ever was."""
    tallies, jobs = Tally.objects.using(engine.using), Job.objects.using(engine.using)
    with write_transaction(engine.using):
        gone = tallies.filter(~Exists(jobs.filter(pk=OuterRef("job_id"))), job_id__in=ids)
        most = conf.METRICS_MAX_JOBS
        last = last_with_label(list(jobs.order_by("pk").values_list("pk", flat=True)), most)
        last = within_border(tallies.filter(job_id=LAST_WITH_LABEL).values_list(*KEY, *AMOUNTS), last, most)
        rows = list(locked(gone.order_by(*KEY)))
        add_rows(engine.using, Tally, KEY, AMOUNTS, _folded(rows, last))
        tallies.filter(job_id__in={row.job_id for row in rows}).delete()


def _folded(rows: Collection[Tally], last: int) -> list[tuple[Any, ...]]:
    sums: dict[Key, list[int]] = {}
    for row in rows:
        place = GONE_AND_FOLDED if is_of_other(row.job_id, last) else GONE
        amounts = sums.setdefault((place, row.status, row.cause, row.took_within, row.late_within), [0] * len(AMOUNTS))
        for number, name in enumerate(AMOUNTS):
            amounts[number] += getattr(row, name)
    return [(*key, *sums[key]) for key in sorted(sums)]
