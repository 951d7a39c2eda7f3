"""The store of activities in the database of the jobs."""

from collections.abc import Sequence
from dataclasses import fields
from datetime import datetime
from secrets import randbits
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import Count, QuerySet

from scheduler.activity.entry import Entry
from scheduler.models import Job
from scheduler.models.activity import Activity, EntryState
from scheduler.models.primary import locked

COLUMNS = tuple(field.name for field in fields(Entry))


class DatabaseStore:
    """An `ActivityStore`. The transactions are the caller's."""

    in_database = True

    def __init__(self, using: str) -> None:
        self._rows = Activity.objects.using(using)
        self._using = using

    def find(self, job: Job, user_key: str) -> Entry | None:
        """As every store."""
        row = locked(self._rows.filter(job=job, user_key=user_key)).first()
        return None if row is None else _entry(row)

    def swap(self, job: Job, old: Entry | None, new: Entry) -> bool:
        """As every store."""
        if old is None:
            return self._insert(job, new)
        columns = _columns(new) | {"version": old.version + 1}
        same = self._rows.filter(job=job, user_key=old.user_key, version=old.version)
        return bool(same.update(**columns))

    def is_idle(self, jobs: Sequence[Job], now: datetime) -> bool:
        """As every store."""
        rows = self._rows.filter(job__in=[job.pk for job in jobs])
        to_look_at = rows.filter(state__in=EntryState.values, wake_at__lte=now)
        return not (to_look_at.exists() or rows.filter(state=EntryState.RUNNING).exists())

    def due(self, job: Job, now: datetime, limit: int) -> list[Entry]:
        """As every store."""
        rows = self._rows.filter(job=job, state=EntryState.PENDING, wake_at__lte=now).order_by("wake_at")
        return _entries(locked(rows, skip_locked=True)[:limit])

    def running(self, job: Job) -> list[Entry]:
        """As every store."""
        return _entries(locked(self._rows.filter(job=job, state=EntryState.RUNNING), skip_locked=True))

    def next_due_at(self, jobs: Sequence[Job]) -> datetime | None:
        """As every store."""
        # No minimum: on SQLite its value would not be read as that of the column is.
        rows = self._pending(jobs).order_by("wake_at").values_list("wake_at", flat=True)
        earliest: datetime | None = rows.first()
        return earliest

    def forget(self, job: Job, now: datetime) -> None:
        """As every store."""
        self._rows.filter(job=job, state=EntryState.DONE, wake_at__lte=now).delete()

    def depths(self, jobs: Sequence[Job]) -> dict[str, int]:
        """As every store."""
        counts: dict[int, int] = dict(self._pending(jobs).values_list("job").annotate(Count("pk")).order_by())
        return {job.name: counts.get(job.pk, 0) for job in jobs}

    def failed(self, job: Job, least: int, now: datetime, limit: int) -> list[Entry]:
        """As every store."""
        rows = self._rows.filter(job=job, failures__gte=least, failures_until__gt=now)
        return _entries(rows.order_by("user_key")[:limit])

    def set_aside(self, jobs: Sequence[Job]) -> dict[str, int]:
        """None: a column that cannot be read reads as empty."""
        return {}

    def close(self) -> None:
        """As every store."""

    def _pending(self, jobs: Sequence[Job]) -> QuerySet[Activity]:
        return self._rows.filter(job__in=[job.pk for job in jobs], state=EntryState.PENDING)

    def _insert(self, job: Job, new: Entry) -> bool:
        try:
            with transaction.atomic(using=self._using):
                # Not from 0: a row that comes after one that was forgotten is another one.
                self._rows.create(job=job, **_columns(new) | {"version": randbits(32)})
        except IntegrityError:
            if self.find(job, new.user_key) is None:
                raise
            return False  # another request of the same user was faster
        return True


def _columns(entry: Entry) -> dict[str, Any]:
    return {name: getattr(entry, name) for name in COLUMNS}


def _entry(row: Activity) -> Entry:
    return Entry(**{name: getattr(row, name) for name in COLUMNS})


def _entries(rows: QuerySet[Activity]) -> list[Entry]:
    return [_entry(row) for row in rows]
