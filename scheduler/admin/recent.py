"""The newest runs of many jobs in one query, whose cost follows the rows it returns and not the ledger."""

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime

from django.db import connections, models

from scheduler.models import RunLog

COLUMNS = ("id", "job_id", "scheduled_for", "status", "started_at", "finished_at", "coalesced")
MOST_TERMS = 400
"""SQLite joins at most 500 SELECTs in one query; more jobs than that take a further query."""


def recent_runs(
    job_ids: Sequence[int], limit: int, *, since: datetime | None = None, columns: Sequence[str] = COLUMNS
) -> dict[int, list[RunLog]]:
    """Return the newest `limit` runs of each job, the newest first, with slots from `since` on.

    One SELECT for each job, joined by UNION ALL: each walks the index (job, slot) from its end and stops.
    """
    found: dict[int, list[RunLog]] = defaultdict(list)
    for first in range(0, len(job_ids), MOST_TERMS):
        for run in _union(job_ids[first : first + MOST_TERMS], limit, since, columns):
            found[run.job_id].append(run)
    return found


def _union(
    job_ids: Sequence[int], limit: int, since: datetime | None, columns: Sequence[str]
) -> "models.query.RawQuerySet[RunLog]":
    using = RunLog.objects.all().db
    terms, values = [], []
    for number, job_id in enumerate(job_ids):
        runs = RunLog.objects.filter(job_id=job_id).order_by("-scheduled_for", "-attempt").values(*columns)
        if since is not None:
            runs = runs.filter(scheduled_for__gte=since)
        sql, params = runs[:limit].query.get_compiler(using).as_sql()
        terms.append(f"SELECT * FROM ({sql}) {connections[using].ops.quote_name(f'j{number}')}")
        values += params
    return RunLog.objects.using(using).raw(" UNION ALL ".join(terms), values)
