"""Kept: since when the ledger of a job has every row there ever was, and where it has none."""

from datetime import datetime
from typing import Any

from django.db.models import Count, Min, Sum
from django.db.models.functions import Coalesce

from scheduler.engine.retention.keep import STATUSES
from scheduler.engine.views.datetimes import LAST
from scheduler.models import Job, RunLog, Status
from scheduler.models.run import COUNTERS
from scheduler.policy.misfire import RESOLUTION

COUNTED_BY_SLOT = (Status.SKIPPED, Status.MISSED)


def complete_since(using: str, job: Job) -> dict[str, datetime]:
    """Return, for each status of which rows are gone, from which slot on there is none missing.

    A job counts for ever, so its counters tell whether any row is gone. Retention removes rows whose slot and whose end
    are before an instant that no row it leaves is before with both: the earliest end that is left bounds what is gone,
    also where an old slot was run again lately.
    """
    rows = RunLog.objects.using(using).filter(job=job, due_at__isnull=True).order_by().values("status")
    ended_at = Coalesce("finished_at", "scheduled_for")
    found = rows.annotate(rows=Count("pk"), beside=Sum("coalesced"), first=Min(ended_at))
    kept: dict[str, Any] = {row["status"]: row for row in found}
    return {
        status: _first_left(kept, status)
        for status, counter in COUNTERS.items()
        if getattr(job, counter) > _counted(kept, status)
    }


def _counted(kept: dict[str, Any], status: str) -> int:
    """Return how much of a counter the rows account for: skips and misses are counted slot by slot, runs are not."""
    if status not in kept:
        return 0
    rows: int = kept[status]["rows"]
    return rows + kept[status]["beside"] if status in COUNTED_BY_SLOT else rows


def _first_left(kept: dict[str, Any], status: str) -> datetime:
    """Return the earliest end among the rows that retention keeps together with those of a status."""
    together = next(statuses for statuses in STATUSES.values() if status in statuses)
    return min((kept[one]["first"] for one in together if one in kept), default=LAST)


def free_slot(using: str, job: Job, slot: datetime) -> datetime:
    """Return the slot, or the first instant after it that is not in the ledger: two runs may be asked for at once."""
    rows = RunLog.objects.using(using).filter(job=job)
    while rows.filter(scheduled_for=slot).exists():
        slot += RESOLUTION
    return slot
