"""Days: how the runs of a job went, day by day, from the rows of the ledger and the totals of those that are gone."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from math import ceil, inf
from typing import Any

from django.db.models import QuerySet

from scheduler.engine.base import Engine
from scheduler.engine.db.fast_read import read_values
from scheduler.engine.db.seconds import SecondsOf
from scheduler.engine.views.datetimes import local, project_zone
from scheduler.models import RAN, DayTotal, Job, RunLog, Status
from scheduler.models.tally import WITH_ERRORS
from scheduler.schedules.wallclock import instant_of

MOST_ROWS = 20_000
"""Rows that one picture reads, the newest: with the default retention, all there are."""
LAST_SECOND = datetime(9000, 1, 1, tzinfo=UTC).timestamp()
MEASURED = (Status.SUCCEEDED, Status.FAILED, Status.TIMED_OUT)

Length = tuple[timedelta, int]
"""A duration, and how many runs took it; of a total the mean of its bucket."""


TOOK = SecondsOf("finished_at") - SecondsOf("started_at")


@dataclass(slots=True)
class Day:
    """The runs of one day in the project's time zone. `failed` are those among `runs` that did not go well."""

    runs: int = 0
    failed: int = 0
    lengths: list[Length] = field(default_factory=list)

    def percentile(self, percent: int) -> timedelta | None:
        """Return the smallest duration that at least `percent` of the runs do not exceed; None where none is known."""
        ascending = sorted(self.lengths)
        left = ceil(sum(count for _, count in ascending) * percent / 100)
        for length, count in ascending:
            left -= count
            if left <= 0:
                return length
        return None


@dataclass(frozen=True, slots=True)
class Days:
    """The days that have runs. Those before `complete_since`, where it is not None, may lack some."""

    by_date: dict[date, Day]
    complete_since: date | None = None


def midnight_of(day: date) -> datetime:
    """Return when a day begins in the project's time zone, in UTC; where clocks skip midnight, the first instant."""
    zone = project_zone()
    return instant_of(zone, datetime.combine(day, time())).replace(tzinfo=UTC)


def days_of(job: Job, first: date, among: QuerySet[RunLog]) -> Days:
    """Return the days of a job from `first` on, of the runs `among`. Two queries, whatever the days and the runs."""
    found: dict[date, Day] = defaultdict(Day)
    rows = among.filter(job=job, status__in=RAN, scheduled_for__gte=midnight_of(first)).order_by("-scheduled_for")
    counted = rows.values_list("status", "errors", SecondsOf("scheduled_for"), TOOK)[:MOST_ROWS]
    newest = [row for row in read_values(counted) if row[2] is not None and row[2] < LAST_SECOND]
    _add_rows(found, newest)
    _add_totals(found, job, first)
    reach = _day_of(newest[-1][2]) + timedelta(days=1) if len(newest) == MOST_ROWS else None
    return Days(dict(found), reach)


def _add_rows(found: dict[date, Day], newest_first: Iterable[tuple[Any, ...]]) -> None:
    begins, day = inf, Day()
    for status, errors, slot, took in newest_first:
        if slot < begins:  # slots go back: each day is looked for once
            on = _day_of(slot)
            begins, day = midnight_of(on).timestamp(), found[on]
        day.runs += 1
        day.failed += status != Status.SUCCEEDED or bool(errors)
        if status in MEASURED and took is not None and abs(took) < LAST_SECOND:
            day.lengths.append((timedelta(seconds=took), 1))


def _day_of(seconds: float) -> date:
    return local(datetime.fromtimestamp(seconds, UTC)).date()


def _add_totals(found: dict[date, Day], job: Job, first: date) -> None:
    totals = DayTotal.objects.using(Engine().using).filter(job_id=job.pk, day__gte=first)
    rows = totals.filter(status__in=[*RAN, WITH_ERRORS]).values_list("day", "status", "took_within", "count", "took")
    for on, status, within, count, took in rows.order_by("day", "status", "took_within"):
        day = found[on]
        day.runs += count
        day.failed += count if status != Status.SUCCEEDED else 0
        if within and count:
            day.lengths.append((timedelta(microseconds=took // count), count))
