"""The newest runs of many jobs in one query, whose cost follows the rows it returns and not the ledger."""

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime

from django.core.exceptions import EmptyResultSet
from django.db import connections, models

from scheduler.models import RunLog
from scheduler.models.distrust import read_with_distrust

COLUMNS = ("id", "job_id", "scheduled_for", "status", "started_at", "finished_at", "coalesced", "errors")
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
    using = RunLog.objects.all().db
    terms, values = [], []
    for number, job_id in enumerate(job_ids):
        runs = among.filter(job_id=job_id).order_by("-scheduled_for", "-attempt").values(*columns)
        try:
            sql, params = runs[:limit].query.get_compiler(using).as_sql()
        except EmptyResultSet:  # Django knows already that the person may see none of them
            continue
        terms.append(f"SELECT * FROM ({sql}) {connections[using].ops.quote_name(f'j{number}')}")
        values += params
    if not terms:
        return []
    return read_with_distrust(using, lambda: list(RunLog.objects.using(using).raw(" UNION ALL ".join(terms), values)))
