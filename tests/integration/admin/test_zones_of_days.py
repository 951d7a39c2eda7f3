"""Lanes, the next hour and durations by day are the rows and the slots, in three zones over a change of clocks."""

import re
from collections import defaultdict
from datetime import UTC, datetime, timedelta
from math import ceil
from zoneinfo import ZoneInfo

import pytest

from scheduler.admin.svg import trend
from scheduler.admin.svg.lanes import WIDTH
from scheduler.engine.views.datetimes import lasted
from scheduler.engine.views.days import days_of
from scheduler.models import RunLog, Status
from scheduler.schedules import Cron, DailyAt, Every
from tests.factories import DAY, HOUR, MINUTE, make_job
from tests.integration.admin.pages import page

pytestmark = pytest.mark.django_db

CHANGES = [
    ("America/Los_Angeles", datetime(2026, 3, 8, 10, tzinfo=UTC)),
    ("America/Los_Angeles", datetime(2026, 11, 1, 9, tzinfo=UTC)),
    ("Asia/Kolkata", datetime(2026, 3, 29, 1, tzinfo=UTC)),
    ("Europe/Berlin", datetime(2026, 3, 29, 1, tzinfo=UTC)),
    ("Europe/Berlin", datetime(2026, 10, 25, 1, tzinfo=UTC)),
]
"""When clocks change, in UTC; those of Kolkata never do."""
over_a_change = pytest.mark.parametrize(("zone", "change"), CHANGES)


def bands_of(response, which: str) -> list[tuple[str, float]]:
    """Return the instants of the bands of a picture, and where they begin."""
    (drawn,) = re.findall(rf'sched-lane-bands"[^>]*aria-label="The {which} 24 hours.*?</svg>', response.text)
    found = re.findall(r'<rect x="([\d.]+)"[^>]*><title data-sched-at="([^"]+)"', drawn)
    return sorted((at, float(x)) for x, at in found)


def expected(slots, start) -> list[tuple[str, float]]:
    return sorted(
        (f"{at:%Y-%m-%dT%H:%M:%SZ}", pytest.approx(min(WIDTH * ((at - start) / DAY), WIDTH - 2), abs=0.06))
        for at in slots
    )


def slots_of(schedule, start, end) -> list[datetime]:
    """Ask for each slot by itself."""
    bound, found = schedule.bind(anchor=start, timezone="UTC"), []
    slot = bound.next_after(start)
    while slot is not None and slot <= end:
        found.append(slot)
        slot = bound.next_after(slot)
    return found


@over_a_change
def test_the_lanes_of_the_next_day_have_each_slot_where_it_is(boss, stop_clock, zone, change):
    now = change - 9 * HOUR
    stop_clock(now)
    schedules = [DailyAt(hour=2, minute=30, timezone=zone), Cron("15 */3 * * *", timezone=zone), Every(hours=5)]
    for number, schedule in enumerate(schedules):
        make_job(f"job{number}", schedule, planned_at=now)
    boss.cookies["sched_zone"] = zone
    slots = [slot for schedule in schedules for slot in slots_of(schedule, now, now + DAY)]
    assert len(slots) > 10
    assert bands_of(boss.get(page("job_overview")), "next") == expected(slots, now)


@over_a_change
def test_the_lanes_of_the_last_day_have_each_row_where_it_is(boss, stop_clock, zone, change):
    now = change + 9 * HOUR
    stop_clock(now)
    job = make_job("job", planned_at=now)
    starts = [now - DAY + number * 97 * MINUTE for number in range(1, 15)]
    for at in starts:
        RunLog.objects.create(
            job=job, scheduled_for=at, started_at=at, finished_at=at + MINUTE, status=Status.SUCCEEDED
        )
    boss.cookies["sched_zone"] = zone
    assert bands_of(boss.get(page("job_overview")), "last") == expected(starts, now - DAY)


@over_a_change
def test_the_next_hour_has_the_slots_on_both_sides_of_the_change(boss, stop_clock, zone, change):
    now = change - 10 * MINUTE
    stop_clock(now)
    local = (change + 20 * MINUTE).astimezone(ZoneInfo(zone))
    schedules = [Cron("*/15 * * * *", timezone=zone), DailyAt(hour=local.hour, minute=local.minute, timezone=zone)]
    for number, schedule in enumerate(schedules):
        make_job(f"job{number}", schedule, planned_at=now)
    listed = boss.get(page("job_overview")).context_data["next_hour"]
    found = {one.job.name: re.search(r'datetime="([^".]+)', str(one.at))[1] for one in listed}
    due = {f"job{number}": slots_of(one, now, now + HOUR) for number, one in enumerate(schedules)}
    assert found == {name: f"{slots[0]:%Y-%m-%dT%H:%M:%S}" for name, slots in due.items() if slots}
    assert {one.job.name: one.further for one in listed} == {
        name: len(slots) - 1 for name, slots in due.items() if slots
    }


@over_a_change
def test_durations_by_day_are_those_of_the_rows_of_each_day_of_the_zone(settings, zone, change):
    settings.TIME_ZONE = zone
    job, by_day = make_job(), defaultdict(list)
    for number in range(-60, 60):
        slot, took = change + number * 53 * MINUTE, timedelta(seconds=1 + number % 13)
        failed = number % 7 == 0
        RunLog.objects.create(
            job=job, scheduled_for=slot, started_at=slot, finished_at=slot + took,
            status=Status.FAILED if failed else Status.SUCCEEDED,
        )  # fmt: skip
        by_day[slot.astimezone(ZoneInfo(zone)).date()].append((took, failed))
    today = max(by_day)
    drawn = trend(days_of(job, min(by_day), RunLog.objects.all()).by_date, today, 30, lambda on: f"/{on}/")
    found = dict(re.findall(r'<a href="/([\d-]+)/"><title>(.*?)</title>', drawn))
    assert len(found) == len(by_day) > 3
    for on, rows in by_day.items():
        lengths = sorted(took for took, _ in rows)
        p50, p95 = (lengths[ceil(len(lengths) * percent / 100) - 1] for percent in (50, 95))
        words = found[f"{on}"]
        failed = sum(failed for _, failed in rows)
        assert f": {len(rows)} runs{f', {failed} failed' if failed else ''} · " in words
        assert words.endswith(f"p50 {lasted(p50)}, p95 {lasted(p95)}")
