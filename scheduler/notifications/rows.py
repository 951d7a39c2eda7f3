"""Rows: notices are written once, each with its deliveries, in one transaction."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any

from django.db import IntegrityError, connections, transaction

from scheduler.engine.db.transactions import write_transaction
from scheduler.models import Job, JobWatch, Notice, NoticeDelivery

AT_ONCE = 50
"""Notices of one transaction: claims wait for it on SQLite."""

Addressed = tuple[Notice, Collection[str]]
"""A notice and the channels that it goes to."""


def write_notices(using: str, notices: Sequence[Addressed], now: datetime) -> int:
    """Write alerts that no other process has written; returns how many were."""
    written = 0
    for at in range(0, len(notices), AT_ONCE):
        written += _write_some(using, notices[at : at + AT_ONCE], now)
    return written


def close(using: str, open_notice: Notice, now: datetime, following: Addressed | None = None) -> bool:
    """Close an outage and write what follows on it; False where another process has done so."""
    with write_transaction(using):
        rows = Notice.objects.using(using).filter(pk=open_notice.pk, open_for=open_notice.open_for)
        if not rows.update(open_for=None, closed_at=now):
            return False
        return following is None or bool(_write(using, *following, now))


def note_seen(using: str, job: Job, columns: Mapping[str, int]) -> None:
    """Remember what was told of a job."""
    watches = JobWatch.objects.using(using)
    with write_transaction(using):
        if not watches.filter(pk=job.pk).update(**columns):
            watches.bulk_create([JobWatch(pk=job.pk, **columns)], ignore_conflicts=True)


def _write_some(using: str, notices: Sequence[Addressed], now: datetime) -> int:
    if connections[using].features.can_return_rows_from_bulk_insert:
        try:
            with write_transaction(using):
                Notice.objects.using(using).bulk_create([notice for notice, _ in notices])
                _deliver(using, notices, now)
            return len(notices)
        except IntegrityError:  # another process was first with some of them
            for notice, _ in notices:
                notice.pk = None
    with write_transaction(using):
        return sum(_write(using, notice, channels, now) for notice, channels in notices)


def _deliver(using: str, notices: Sequence[Addressed], now: datetime) -> None:
    rows: list[Any] = [
        NoticeDelivery(notice=notice, channel=name, due_at=now) for notice, names in notices for name in names
    ]
    NoticeDelivery.objects.using(using).bulk_create(rows)


def _write(using: str, notice: Notice, channels: Collection[str], now: datetime) -> int:
    try:
        with transaction.atomic(using=using):
            notice.save(using=using, force_insert=True)
            _deliver(using, [(notice, channels)], now)
    except IntegrityError:  # another process was first
        return 0
    return 1
