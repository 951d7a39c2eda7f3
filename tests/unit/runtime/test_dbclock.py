"""Clocks: steps of the wall clock are noticed by the clock that cannot be set."""

from datetime import timedelta

import pytest

from scheduler.runtime.dbclock import DatabaseClock, StepWatch
from scheduler.testing import ManualClock
from tests.factories import T0, at

HOUR = 3600


@pytest.mark.parametrize(
    ("passed", "shown", "moved"),
    [
        (10, 10, 0),
        (10, 11.9, 0),
        (10, 8.1, 0),
        (10, 10 - HOUR, -HOUR),
        (10, 10 + HOUR, HOUR),
        (0, 10 * 365 * 86_400, 10 * 365 * 86_400),
    ],
)
def test_a_step_is_what_the_wall_clock_did_beyond_real_time_D6_D7(passed, shown, moved):
    clock = ManualClock(T0)
    watch = StepWatch(clock)
    clock.advance(passed)
    clock.set(at(shown))
    assert watch.step() == timedelta(seconds=moved)
    assert watch.step() == timedelta(0), "a step is told once"


def test_a_slow_drift_is_no_step():
    clock = ManualClock(T0)
    watch = StepWatch(clock)
    for _ in range(100):
        clock.advance(60)
        clock.set(clock.now() + timedelta(seconds=1))
        assert watch.step() == timedelta(0)


def test_the_time_of_the_database_is_used_and_a_large_difference_is_said_once(caplog):
    clock = DatabaseClock(ManualClock(T0))
    for _ in range(3):
        clock._adopt(timedelta(seconds=-5))
    assert clock.now() == at(-5)
    assert caplog.text.count("The clock of the database is -5.0 s from this host's") == 1


def test_a_small_difference_is_used_without_a_word(caplog):
    clock = DatabaseClock(ManualClock(T0))
    clock._adopt(timedelta(seconds=0.5))
    assert clock.now() == at(0.5)
    assert caplog.records == []


@pytest.mark.parametrize("asked", [0, 1], ids=["the answer is slow", "the question is slow"])
@pytest.mark.parametrize("seconds", [0.02, 2])
def test_after_a_round_trip_however_slow_nobody_is_ahead_of_the_database_I4(monkeypatch, asked, seconds):
    """A clock that is ahead starts jobs before their slots; in a short round trip it is a hundredth of a second."""
    host = ManualClock(T0)

    def database_time(using):
        host.advance(seconds)
        return at(asked * seconds)

    monkeypatch.setattr("scheduler.runtime.dbclock.dbtime.database_time", database_time)
    clock = DatabaseClock(host)
    clock.measure("default")
    assert clock.now() <= host.now() + timedelta(seconds=0.01)
