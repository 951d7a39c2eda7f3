"""Invariant I21 for all kinds, zones and instants: later than asked, constant between slots, the same both ways."""

# ruff: noqa: DTZ901 - naive on purpose

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.schedules import parse, parse_text
from tests.unit.schedules.strategies import crons, instants, schedules, walls

MICROSECOND = timedelta(microseconds=1)


@given(schedules, instants)
def test_the_next_slot_is_later_and_aware_utc(schedule, t):
    slot = schedule.next_after(t)
    assert slot is None or (slot > t and slot.tzinfo is UTC)


@given(schedules, instants)
def test_the_previous_slot_is_earlier_and_aware_utc(schedule, t):
    slot = schedule.previous_before(t)
    assert slot is None or (slot < t and slot.tzinfo is UTC)


@given(schedules, instants, st.floats(0, 1))
def test_the_next_slot_is_constant_between_firings(schedule, t, part):
    slot = schedule.next_after(t)
    if slot is not None:
        assert schedule.next_after(t + (slot - t) * part - MICROSECOND) in {slot, schedule.next_after(t - MICROSECOND)}
        assert schedule.next_after(slot - MICROSECOND) == slot


@given(schedules, instants)
def test_previous_and_next_agree(schedule, t):
    after, before = schedule.next_after(t), schedule.previous_before(t)
    if after is not None:
        assert schedule.previous_before(after) is None or schedule.previous_before(after) <= t
        assert schedule.previous_before(after + MICROSECOND) == after
    if before is not None:
        assert schedule.next_after(before) is None or schedule.next_after(before) >= t
        assert schedule.next_after(before - MICROSECOND) == before


@given(schedules, instants, st.integers(1, 12))
def test_counting_agrees_with_enumerating(schedule, t, n):
    slots = schedule.upcoming(n, t)
    assert slots == sorted(set(slots))
    if slots:
        assert schedule.count_between(t, slots[-1]) == len(slots)
        assert schedule.count_between(t, slots[-1] - MICROSECOND) == len(slots) - 1
        assert schedule.count_between(t, slots[-1], limit=1) == 1


@given(walls, instants, st.integers(1, 5000), st.integers(1, 5000))
def test_counts_add_up(schedule, a, hours, more):
    b = a + timedelta(hours=hours)
    c = b + timedelta(hours=more)
    assert schedule.count_between(a, b) + schedule.count_between(b, c) == schedule.count_between(a, c)


@given(walls, instants)
def test_notes_stand_on_slots_of_the_window(schedule, a):
    b = a + timedelta(days=200)
    for slot, note in schedule.notes_between(a, b):
        assert a < slot <= b
        assert schedule.next_after(slot - MICROSECOND) == slot
        assert schedule.dst_note(slot) == note


@given(schedules)
def test_text_and_data_are_read_back_as_the_same_schedule(schedule):
    assert parse_text(schedule.to_text()) == schedule
    assert parse(schedule.to_dict()) == schedule
    assert hash(parse(schedule.to_dict())) == hash(schedule)


@given(schedules, st.sampled_from([datetime.min, datetime.max]), st.integers(-14 * 60, 14 * 60))
def test_the_ends_of_time_raise_nothing(schedule, end, minutes):
    t = end.replace(tzinfo=UTC if minutes == 0 else timezone(timedelta(minutes=minutes)))
    for slot in (schedule.next_after(t), schedule.previous_before(t)):
        assert slot is None or slot.tzinfo is UTC


@pytest.mark.thorough
@settings(max_examples=max(1, settings.default.max_examples // 50))  # seconds each
@given(schedules)
def test_all_of_time_can_be_counted(schedule):
    assert schedule.count_between(datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)) >= 0


@given(crons)
def test_every_cron_can_be_described(schedule):
    assert schedule.describe().strip()
