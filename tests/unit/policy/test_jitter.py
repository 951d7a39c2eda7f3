"""Jitter: the same everywhere, within its range, below the next slot, spread over jobs."""

from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from scheduler.policy.jitter import delay
from tests.factories import T0, at

HALF_MINUTE = timedelta(seconds=30)


def test_no_jitter_is_no_delay():
    assert delay("job", T0, timedelta(0), at(60)) == timedelta(0)


def test_the_delay_of_a_slot_is_the_same_on_every_host_and_after_every_restart():
    assert delay("job", T0, HALF_MINUTE, None) == timedelta(seconds=28, microseconds=3679)


@given(st.text(min_size=1), st.integers(0, 10**6), st.integers(1, 10**6), st.integers(1, 10**6))
def test_a_delay_is_in_range_and_below_the_next_slot_I4(name, slot, jitter, gap):
    wanted = timedelta(seconds=jitter)
    found = delay(name, at(slot), wanted, at(slot + gap))
    assert timedelta(0) <= found <= wanted
    assert at(slot) + found < at(slot + gap)


def test_jobs_of_one_schedule_are_spread_U3():
    starts = sorted(delay(f"job{number}", T0, HALF_MINUTE, None) for number in range(1000))
    assert starts[0] < timedelta(seconds=1)
    assert starts[-1] > timedelta(seconds=29)
    per_second = [sum(second <= start.total_seconds() < second + 1 for start in starts) for second in range(30)]
    assert max(per_second) < 70


def test_the_slots_of_one_job_are_delayed_differently():
    assert len({delay("job", at(60 * minute), HALF_MINUTE, None) for minute in range(100)}) == 100
