"""Once."""

# ruff: noqa: DTZ001, DTZ901 - naive on purpose

from datetime import UTC, datetime, timedelta, timezone

import pytest

from scheduler.exceptions import InvalidSchedule
from scheduler.schedules import Once, parse

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def test_it_has_one_slot():
    schedule = Once(NOON)
    assert schedule.next_after(NOON - timedelta(seconds=1)) == NOON
    assert schedule.next_after(NOON) is None
    assert schedule.previous_before(NOON) is None
    assert schedule.previous_before(NOON + timedelta(seconds=1)) == NOON
    assert schedule.count_between(NOON - timedelta(days=1), NOON) == 1
    assert schedule.count_between(NOON, NOON + timedelta(days=1)) == 0
    assert schedule.upcoming(5, NOON - timedelta(days=1)) == [NOON]


def test_a_naive_time_is_wall_time_of_the_zone_it_is_bound_to():
    schedule = Once(datetime(2026, 1, 1, 12))
    assert schedule.to_text() == "once at 2026-01-01T12:00:00"
    bound = schedule.bind(anchor=None, timezone="Asia/Shanghai")
    assert bound.next_after(datetime(2025, 1, 1, tzinfo=UTC)) == datetime(2026, 1, 1, 4, tzinfo=UTC)
    assert schedule.next_after(datetime(2025, 1, 1, tzinfo=UTC)) == NOON


def test_its_own_zone_wins_and_is_resolved_at_once():
    schedule = Once(datetime(2026, 1, 1, 12), timezone="Asia/Shanghai")
    assert schedule == Once(datetime(2026, 1, 1, 4, tzinfo=UTC))
    assert schedule.bind(anchor=None, timezone="Europe/Berlin") is schedule


def test_a_lost_time_is_the_end_of_the_gap_and_a_double_one_its_first_pass():
    lost = Once(datetime(2026, 3, 29, 2, 30), timezone="Europe/Berlin")
    assert lost.at == datetime(2026, 3, 29, 1, tzinfo=UTC)
    double = Once(datetime(2026, 10, 25, 2, 30), timezone="Europe/Berlin")
    assert double.at == datetime(2026, 10, 25, 0, 30, tzinfo=UTC)
    split = Once(datetime(2026, 3, 29, 2, 30, 0, 7), timezone="Europe/Berlin")
    assert split.at == datetime(2026, 3, 29, 1, tzinfo=UTC)


def test_what_is_no_instant_is_refused():
    with pytest.raises(InvalidSchedule) as caught:
        Once("tomorrow")
    assert caught.value.field == "at"


@pytest.mark.parametrize(
    ("at", "timezone"), [(datetime.min, "Asia/Tokyo"), (datetime.max, "America/New_York")], ids=["before", "after"]
)
def test_a_wall_time_that_no_instant_has_is_refused(at, timezone):
    for resolve in (
        lambda: Once(at, timezone=timezone),
        lambda: Once(at).bind(anchor=None, timezone=timezone),
        lambda: parse(f"once at {at.isoformat()} @ {timezone}"),
    ):
        with pytest.raises(InvalidSchedule, match="years 1 to 9999") as caught:
            resolve()
        assert caught.value.field == "at"


def test_an_instant_beyond_the_calendar_is_its_end():
    assert Once(datetime.max.replace(tzinfo=timezone(timedelta(hours=-5)))).at == datetime.max.replace(tzinfo=UTC)


def test_it_describes_itself():
    assert Once(NOON).describe() == "Once at 2026-01-01 12:00:00 UTC"
