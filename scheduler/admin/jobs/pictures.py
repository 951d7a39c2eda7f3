"""The pictures on the page of a job: how long its runs took, and how they went day by day, each a link to the runs."""

from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from functools import partial
from typing import Any
from urllib.parse import urlencode

from django.conf import settings
from django.db.models import QuerySet
from django.utils.safestring import SafeString

from scheduler.admin.names import address_of
from scheduler.admin.svg import calendar_map, duration_bars, histogram, trend
from scheduler.admin.svg.calendar import first_day
from scheduler.engine.views.datetimes import local
from scheduler.engine.views.days import days_of, midnight_of
from scheduler.models import RAN, Job, RunLog

PERIODS = (30, 180)
"""Days over which durations are drawn."""


def pictures_of(
    job: Job, runs: Sequence[RunLog], now: datetime, *, among: QuerySet[RunLog], site: str, period: int | None
) -> dict[str, Any]:
    """Return the pictures of a job; `runs` are its newest, `among` those that the person may see."""
    today = local(now).date()
    days = days_of(job, min(first_day(today), today - timedelta(days=max(PERIODS) - 1)), among)
    timed = [run.duration for run in runs if run.duration is not None and run.status in RAN]
    shown = period if period in PERIODS else PERIODS[0]
    day = partial(address_of_day, site, job)
    in_half_a_year = {on: one for on, one in days.by_date.items() if on >= first_day(today)}
    return {
        "bars": duration_bars(runs, lambda run: address_of(site, "runlog_change", run.pk)) if timed else SafeString(),
        "histogram": histogram(timed),
        "calendar": calendar_map(in_half_a_year, today, day) if days.by_date else SafeString(),
        "trend": trend(days.by_date, today, shown, day) if days.by_date else SafeString(),
        "periods": PERIODS,
        "period": shown,
        "days_complete_since": days.complete_since,
        "calendar_zone": settings.TIME_ZONE,
    }


def address_of_day(site: str, job: Job, on: date) -> str:
    """Return the address of the runs of a job whose slots are of one day in the project's time zone."""
    return address_of_runs(site, job.pk, midnight_of(on), midnight_of(on + timedelta(days=1)))


def address_of_runs(site: str, pk: int, since: datetime, until: datetime) -> str:
    """Return the address of the runs of a job with slots from `since` on, and before `until`."""
    bounds = {
        "since": f"{since.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}",
        "until": f"{until.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}",
    }
    return f"{address_of(site, 'job_runs', pk)}?{urlencode(bounds)}"
