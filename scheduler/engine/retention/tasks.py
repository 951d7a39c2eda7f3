"""Tasks: those that were enqueued go by age alone, and all attempts of one together with its last."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from django.db.models import Exists, OuterRef

from scheduler.engine.db.transactions import write_transaction
from scheduler.engine.retention.keep import STATUSES, Kind
from scheduler.models import RunKey, RunLog
from scheduler.models.run import RunQuerySet

KEYS_AT_ONCE = 1000
KEYS_KEPT = timedelta(hours=1)
"""A process that puts another task under a key, which this one has not seen, gives it a younger slot."""


def last_attempts(rows: RunQuerySet, job_id: int, kind: Kind) -> RunQuerySet:
    """Return the last attempts of tasks that have ended so; never those of a task of which an attempt is open."""
    later = rows.filter(job=OuterRef("job"), scheduled_for=OuterRef("scheduled_for"), attempt__gt=OuterRef("attempt"))
    ended = rows.filter(job=job_id, status__in=STATUSES[kind], due_at__isnull=True)
    return ended.filter(~Exists(later))


def with_earlier(rows: RunQuerySet, job_id: int, batch: Sequence[tuple[int, datetime]]) -> list[int]:
    """Return the ids of last attempts, and of the attempts before them."""
    slots = [slot for _, slot in batch]
    return list(rows.filter(job=job_id, scheduled_for__in=slots).values_list("pk", flat=True))


def forget_run_keys(using: str, now: datetime) -> int:
    """Remove keys whose task has ended, at most a thousand; returns how many. Used again, a key is written again."""
    still_open = RunLog.objects.using(using).filter(
        job=OuterRef("job_id"), scheduled_for=OuterRef("scheduled_for"), due_at__isnull=False
    )
    old = RunKey.objects.using(using).filter(~Exists(still_open), scheduled_for__lt=now - KEYS_KEPT)
    found = list(old.order_by("scheduled_for").values_list("pk", flat=True)[:KEYS_AT_ONCE])
    if not found:
        return 0
    with write_transaction(using):
        return old.filter(pk__in=found).delete()[0]
