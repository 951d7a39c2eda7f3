"""The calendar arithmetic, against plain enumeration."""

# ruff: noqa: DTZ001 - naive on purpose

from datetime import datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from scheduler.schedules.pattern import CalendarDays, DayTimes, Pattern

subset = st.sets
patterns = st.tuples(
    subset(st.integers(1, 31), min_size=1),
    subset(st.integers(1, 12), min_size=1),
    subset(st.integers(0, 23), min_size=1),
    subset(st.integers(0, 59), min_size=1, max_size=3),
)
walls = st.datetimes(datetime(2023, 11, 1), datetime(2024, 4, 1)).map(lambda wall: wall.replace(microsecond=0))


def build(days, months, hours, minutes):
    return Pattern(
        CalendarDays(lambda first, length: {d for d in days if d <= length}, months), DayTimes(hours, minutes)
    )


def enumerated(days, months, hours, minutes, start, end):
    """All matches in `start <= wall < end`, day by day."""
    day, found = start.replace(hour=0, minute=0, second=0), []
    while day < end:
        if day.day in days and day.month in months:
            found += [day.replace(hour=hour, minute=minute) for hour in sorted(hours) for minute in sorted(minutes)]
        day += timedelta(days=1)
    return [wall for wall in found if start <= wall < end]


@given(patterns, walls, walls)
def test_it_finds_and_counts_what_enumeration_finds(parts, one, other):
    start, end = sorted((one, other))
    pattern, expected = build(*parts), enumerated(*parts, start, end)
    assert pattern.count(start, end) == len(expected)
    if expected:
        assert pattern.first_from(start) == expected[0]
        assert pattern.last_before(end) == expected[-1]


def test_it_ends_with_the_calendar():
    only_leap = build({29}, {2}, {0}, {0})
    assert only_leap.first_from(datetime(9997, 1, 1)) is None
    assert only_leap.last_before(datetime(4, 2, 29)) is None
    assert only_leap.count(datetime(1, 1, 1), datetime(9999, 12, 31)) == 2424
