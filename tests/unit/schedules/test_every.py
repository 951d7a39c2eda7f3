"""Every: a grid of elapsed time."""

# ruff: noqa: DTZ001 - naive on purpose

from datetime import UTC, datetime, timedelta, timezone

import pytest

from scheduler.exceptions import InvalidSchedule
from scheduler.schedules import Every
from tests.costs import quick

NOON = datetime(2026, 11, 27, 12, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)


@pytest.mark.parametrize(
    "schedule",
    [
        Every("1h30m"),
        Every(minutes=90),
        Every(hours=1, minutes=30),
        Every(hours=1.5),
        Every(5400),
        Every(timedelta(minutes=90)),
        Every(seconds=5400),
    ],
)
def test_every_spelling_of_an_interval_is_the_same_schedule(schedule):
    assert schedule == Every("90m")
    assert hash(schedule) == hash(Every("90m"))
    assert schedule.period == timedelta(minutes=90)


def test_slots_stand_on_the_grid_of_the_anchor():
    schedule = Every(hours=6, anchor=NOON)
    assert schedule.next_after(NOON) == NOON + timedelta(hours=6)
    assert schedule.next_after(NOON + timedelta(hours=13)) == NOON + timedelta(hours=18)
    assert schedule.previous_before(NOON + timedelta(hours=13)) == NOON + timedelta(hours=12)
    assert schedule.previous_before(NOON + timedelta(hours=12)) == NOON + timedelta(hours=6)


def test_an_anchor_in_the_future_is_the_first_slot():
    schedule = Every(hours=6, anchor=NOON)
    assert schedule.next_after(NOON - timedelta(days=100)) == NOON
    assert schedule.next_after(NOON - MICROSECOND) == NOON
    assert schedule.previous_before(NOON) is None
    assert schedule.count_between(NOON - timedelta(days=1), NOON) == 1


def test_binding_gives_the_anchor_only_where_there_is_none():
    assert Every(hours=1).bind(anchor=NOON, timezone="UTC") == Every(hours=1, anchor=NOON)
    own = Every(hours=1, anchor=NOON)
    assert own.bind(anchor=NOON + MICROSECOND, timezone="UTC") is own
    counted = Every(hours=1, from_completion=True)
    assert counted.bind(anchor=NOON, timezone="UTC") is counted
    assert Every(hours=1).bind(anchor=None, timezone="UTC") == Every(hours=1)


def test_unbound_it_is_one_interval_from_the_question():
    assert Every(hours=1).next_after(NOON) == NOON + timedelta(hours=1)
    assert Every(hours=1).previous_before(NOON) is None


def test_counted_from_completion_at_most_one_slot_waits():
    schedule = Every(hours=6, from_completion=True)
    assert schedule.from_completion
    assert schedule.next_after(NOON) == NOON + timedelta(hours=6)
    assert schedule.previous_before(NOON) is None
    assert schedule.count_between(NOON, NOON + timedelta(days=30)) == 1
    assert schedule.count_between(NOON, NOON + timedelta(hours=5)) == 0


def test_ten_years_of_seconds_are_one_division():
    schedule = Every(seconds=1, anchor=NOON)
    with quick(0.05):
        assert schedule.count_between(NOON, NOON + timedelta(days=3653)) == 3653 * 86_400


def test_from_1970_to_today_counts_the_same_way():
    start = datetime(1970, 1, 1, tzinfo=UTC)
    assert Every(seconds=1, anchor=start).count_between(start, NOON) == (NOON - start) // timedelta(seconds=1)


def test_counts_saturate_at_the_limit():
    assert Every(seconds=1, anchor=NOON).count_between(NOON, NOON + timedelta(days=1), limit=10) == 10


def test_nothing_lies_between_b_and_an_earlier_a():
    assert Every(seconds=1, anchor=NOON).count_between(NOON + timedelta(days=1), NOON) == 0


def test_past_the_year_9999_there_is_nothing():
    schedule = Every(days=365, anchor=NOON)
    assert schedule.next_after(datetime(9999, 12, 1, tzinfo=UTC)) is None
    assert Every(days=365).next_after(datetime(9999, 12, 1, tzinfo=UTC)) is None


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"seconds": 0}, "interval"),
        ({"seconds": -5}, "seconds"),
        ({"minutes": float("nan")}, "minutes"),
        ({"hours": float("inf")}, "hours"),
        ({"days": 10**9}, "days"),
        ({"days": 10**400}, "days"),
        ({"seconds": 10**5000}, "seconds"),
        ({"seconds": True}, "seconds"),
        ({"seconds": "5"}, "seconds"),
        ({"interval": "soon"}, "interval"),
        ({"interval": ""}, "interval"),
        ({"interval": "0s"}, "interval"),
        ({"interval": "1h", "minutes": 5}, "interval"),
        ({"interval": timedelta(seconds=-1)}, "interval"),
        ({"seconds": 1, "from_completion": "false"}, "from_completion"),
        ({"seconds": 1, "jitter": -1}, "jitter"),
        ({"seconds": 1, "jitter": "later"}, "jitter"),
        ({"seconds": 1, "anchor": datetime(2026, 1, 1)}, "anchor"),
        ({"seconds": 1, "anchor": NOON, "from_completion": True}, "anchor"),
    ],
    ids=lambda value: str(value)[:40] if isinstance(value, str) else "options",
)
def test_what_cannot_be_is_refused_by_name(options, field):
    with pytest.raises(InvalidSchedule) as caught:
        Every(**options)
    assert caught.value.field == field
    assert field in str(caught.value) or field == "seconds"


def test_a_naive_question_is_refused():
    with pytest.raises(ValueError, match="aware"):
        Every(seconds=1).next_after(datetime(2026, 1, 1))


def test_the_anchor_is_the_same_in_any_zone():
    elsewhere = NOON.astimezone(timezone(timedelta(hours=5, minutes=45)))
    assert Every(hours=1, anchor=elsewhere) == Every(hours=1, anchor=NOON)
    assert Every(hours=1, anchor=elsewhere).to_text() == "every 1h anchored at 2026-11-27T12:00:00Z"


@pytest.mark.parametrize(
    ("schedule", "words"),
    [
        (Every(hours=1), "Every hour"),
        (Every(hours=6), "Every 6 hours"),
        (Every("1h30m"), "Every 1 hour 30 minutes"),
        (Every(seconds=0.5), "Every 0.5 seconds"),
        (Every("2d1s"), "Every 2 days 1 second"),
        (Every(hours=1, from_completion=True), "Every hour, counted from the end of the last run"),
    ],
)
def test_it_describes_itself(schedule, words):
    assert schedule.describe() == words
