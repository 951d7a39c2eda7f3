"""Backoff steps: listed or computed, never overflowing, never below zero."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.policy.backoff import Exponential, Steps

MINUTE = timedelta(minutes=1)
N3 = Exponential(base=MINUTE, factor=2, cap=timedelta(hours=1))


def seconds_of(backoff, *failures):
    return [backoff.step(n).total_seconds() for n in failures]


def test_the_default_steps_are_those_of_the_design():
    assert seconds_of(Steps(), 1, 2, 3, 4, 5, 6, 1000) == [30, 60, 300, 900, 3600, 3600, 3600]


def test_doubling_from_a_minute_to_an_hour_gives_exactly_these_delays_N3():
    assert seconds_of(N3, *range(1, 8)) == [60, 120, 240, 480, 960, 1920, 3600]


@pytest.mark.parametrize("failures", [50, 1100, 10**6, 10**12])
def test_any_number_of_failures_gives_the_cap_and_no_overflow_N3(failures):
    assert N3.step(failures) == timedelta(hours=1)


@pytest.mark.parametrize(
    ("backoff", "failures", "expected"),
    [
        (Steps(()), 5, 0),
        (Steps(), 0, 0),
        (N3, 0, 0),
        (N3, -3, 0),
        (Exponential(timedelta(0)), 9, 0),
        (Exponential(MINUTE, factor=1), 9, 60),
        (Exponential(timedelta(hours=2)), 1, 3600),
        (Exponential(timedelta(microseconds=1), factor=1000, cap=timedelta(days=30_000)), 10**6, 30_000 * 86_400),
    ],
)
def test_edges(backoff, failures, expected):
    assert seconds_of(backoff, failures) == [expected]


@given(
    base=st.floats(0.001, 1e6),
    factor=st.floats(1, 1000),
    cap=st.floats(0.001, 1e8),
    failures=st.integers(1, 10**9),
)
def test_a_computed_delay_grows_and_stays_between_zero_and_its_cap(base, factor, cap, failures):
    backoff = Exponential(timedelta(seconds=base), factor, timedelta(seconds=cap))
    assert timedelta(0) <= backoff.step(failures) <= backoff.step(failures + 1) <= backoff.cap
