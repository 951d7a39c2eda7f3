"""The slots around clock changes against a second, literal reading of the rules.

Fixed: a wall time is served at the first instant the clock has reached it. Wildcard: at every instant it shows.
"""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from scheduler.schedules import Cron

MINUTE = timedelta(minutes=1)
WINDOW = timedelta(days=3)
CHANGES = [
    ("Africa/Cairo", "2026-04-23T22:00"),
    ("Africa/Cairo", "2026-10-29T21:00"),
    ("Africa/Casablanca", "2026-02-15T02:00"),
    ("Africa/Casablanca", "2026-03-22T02:00"),
    ("America/Caracas", "2016-05-01T07:00"),
    ("America/New_York", "2026-11-01T06:00"),
    ("America/Santiago", "2026-04-05T03:00"),
    ("America/Santiago", "2026-09-06T04:00"),
    ("America/St_Johns", "2006-10-29T02:31"),
    ("Antarctica/Troll", "2026-03-29T01:00"),
    ("Asia/Beirut", "2026-03-28T22:00"),
    ("Asia/Gaza", "2011-08-01T00:00"),
    ("Asia/Kathmandu", "1985-12-31T18:30"),
    ("Asia/Pyongyang", "2015-08-14T15:00"),
    ("Australia/Lord_Howe", "2026-04-04T15:00"),
    ("Australia/Lord_Howe", "2026-10-03T15:30"),
    ("Europe/Berlin", "2026-03-29T01:00"),
    ("Europe/Berlin", "2026-10-25T01:00"),
    ("Europe/Dublin", "2026-10-25T01:00"),
    ("Pacific/Apia", "2011-12-30T10:00"),
    ("Pacific/Chatham", "2026-04-04T14:00"),
    ("Pacific/Kwajalein", "1993-08-20T12:00"),
]
FIXED = {
    "30 2 * * *": lambda wall: (wall.hour, wall.minute) == (2, 30),
    "0 0 * * *": lambda wall: (wall.hour, wall.minute) == (0, 0),
    "0,15,45 0-3 * * *": lambda wall: wall.hour < 4 and wall.minute in (0, 15, 45),
    "5 0-23 * * *": lambda wall: wall.minute == 5,
    "40 23,1 * * 6,0": lambda wall: wall.hour in (23, 1) and wall.minute == 40 and wall.isoweekday() in (6, 7),
}
WILDCARD = {
    "*/20 * * * *": lambda wall: wall.minute % 20 == 0,
    "7 * * * *": lambda wall: wall.minute == 7,
    "*/15 0-2 * * *": lambda wall: wall.minute % 15 == 0 and wall.hour < 3,
    "30 */2 * * 0": lambda wall: wall.minute == 30 and wall.hour % 2 == 0 and wall.isoweekday() == 7,
}


def clock(zone, start):
    """Every minute of the window, with what the clock shows."""
    for step in range(int(WINDOW / MINUTE)):
        instant = start + step * MINUTE
        yield instant, instant.astimezone(zone).replace(tzinfo=None, fold=0)


def served(zone, start, matches):
    """Fixed times: walk the clock; whenever it shows more than ever before, all times up to there are served."""
    slots, reached = [], None
    for instant, wall in clock(zone, start):
        passed = reached or wall - MINUTE
        minutes = range(1, int((wall - passed) / MINUTE) + 1)
        if any(matches(passed + step * MINUTE) for step in minutes):
            slots.append(instant)
        reached = max(passed, wall)
    return slots


def shown(zone, start, matches):
    return [instant for instant, wall in clock(zone, start) if matches(wall)]


def check(expression, timezone, change, expected_of, matches):
    start = datetime.fromisoformat(change).replace(tzinfo=UTC) - WINDOW / 2
    expected = expected_of(ZoneInfo(timezone), start, matches)
    schedule = Cron(expression, timezone=timezone)
    before, last = start - timedelta(seconds=1), start + WINDOW - MINUTE
    slots = [slot for slot in schedule.upcoming(len(expected) + 1, before) if slot <= last]
    assert slots == expected
    assert schedule.count_between(before, last) == len(expected)
    backwards, slot = [], schedule.previous_before(last + timedelta(seconds=1))
    while slot > before:
        backwards.append(slot)
        slot = schedule.previous_before(slot)
    assert backwards[::-1] == expected


@pytest.mark.sweep(3)
@pytest.mark.parametrize(("timezone", "change"), CHANGES)
def test_fixed_times_are_served_when_the_clock_first_reaches_them(timezone, change):
    for expression, matches in FIXED.items():
        check(expression, timezone, change, served, matches)


@pytest.mark.sweep(3)
@pytest.mark.parametrize(("timezone", "change"), CHANGES)
def test_wildcards_fire_at_every_instant_the_clock_shows_them(timezone, change):
    for expression, matches in WILDCARD.items():
        check(expression, timezone, change, shown, matches)
