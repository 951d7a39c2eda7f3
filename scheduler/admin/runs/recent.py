"""The newest runs of many jobs in one query, whose cost follows the rows it returns and not the ledger."""

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime

from django.db import models

from scheduler.engine.db.fast_read import part_of, read_union
from scheduler.models import RunLog

COLUMNS = ("id", "job_id", "scheduled_for", "status", "started_at", "finished_at", "coalesced", "errors")
ANY_JOB = -(2**40) - 15
"""Stands for the key of a job: no row has it."""
MOST_TERMS = 400
"""SQLite joins at most 500 SELECTs in one query; more jobs than that take a further query."""


def recent_runs(
    job_ids: Sequence[int],
    limit: int,
    *,
    among: models.QuerySet[RunLog],
    since: datetime | None = None,
    columns: Sequence[str] = COLUMNS,
) -> dict[int, list[RunLog]]:
    """Return the newest `limit` runs of each job, the newest first, with slots from `since` on, of those `among` which
    the person may see.

    One SELECT for each job, joined by UNION ALL: each walks the index (job, slot) from its end and stops.
    """
    found: dict[int, list[RunLog]] = defaultdict(list)
    for first in range(0, len(job_ids), MOST_TERMS):
        runs = among if since is None else among.filter(scheduled_for__gte=since)
        for run in _union(job_ids[first : first + MOST_TERMS], limit, runs, columns):
            found[run.job_id].append(run)
    return found


def _union(job_ids: Sequence[int], limit: int, among: models.QuerySet[RunLog], columns: Sequence[str]) -> list[RunLog]:
    runs = among.filter(job_id=ANY_JOB).order_by("-scheduled_for", "-attempt").values_list(*columns)[:limit]
    return [part_of(RunLog, runs.db, columns, values) for values in read_union(runs, ANY_JOB, job_ids)]
