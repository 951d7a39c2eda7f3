"""Clocks: steps of the wall clock are noticed by the clock that cannot be set."""

from datetime import timedelta

import pytest

from scheduler.clock import ManualClock
from scheduler.runtime.database_clock import DatabaseClock, StepWatch
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


class Server:
    """A database whose clock is `ahead` seconds of the host's; each question takes the next of `trips`: there, back."""

    def __init__(self, monkeypatch, ahead=0.0, trips=((0.0, 0.0),), connecting=0.0):
        self.host, self.ahead, self.trips, self.connecting = ManualClock(T0), ahead, list(trips), connecting
        self.asked = 0
        monkeypatch.setattr("scheduler.runtime.database_clock.shared_time.connect", self.connect)
        monkeypatch.setattr("scheduler.runtime.database_clock.shared_time.database_time", self.database_time)

    @property
    def time(self):
        return self.host.now() + timedelta(seconds=self.ahead)

    def connect(self, using):
        self.host.advance(self.connecting)
        self.connecting = 0.0

    def database_time(self, using):
        there, back = self.trips[min(self.asked, len(self.trips) - 1)]
        self.asked += 1
        self.host.advance(self.connecting + there)
        self.connecting = 0.0
        told = self.time
        self.host.advance(back)
        return told

    def measured(self):
        clock = DatabaseClock(self.host)
        clock.measure("default")
        return clock


TRIPS = [(0.0, 0.0), (0.02, 0.0), (0.0, 0.02), (2.0, 0.0), (0.0, 2.0)]


@pytest.mark.parametrize("ahead", [-3600.0, -0.3, 0.0, 0.3, 3600.0])
@pytest.mark.parametrize("trip", TRIPS)
def test_after_a_round_trip_however_slow_nobody_is_ahead_of_the_database_I4(monkeypatch, trip, ahead):
    """A clock that is ahead starts jobs before their slots. A host's own clock is in doubt by the round trip only."""
    server = Server(monkeypatch, ahead, [trip])
    clock = server.measured()
    allowed = timedelta(seconds=-ahead if -sum(trip) <= ahead < 0 else 0)
    assert clock.now() <= server.time + allowed


@pytest.mark.parametrize("trip", TRIPS)
def test_a_host_that_the_database_is_on_goes_by_its_own_clock_exactly_I4(monkeypatch, trip):
    server = Server(monkeypatch, 0.0, [trip])
    assert server.measured().now() == server.host.now()


def test_opening_the_connection_is_no_part_of_the_round_trip_I4(monkeypatch):
    server = Server(monkeypatch, 60.0, [(0.0, 0.001)], connecting=0.03)
    assert server.time - server.measured().now() <= timedelta(seconds=0.001)
    assert server.asked == 1


def test_a_long_round_trip_is_made_again_and_the_shortest_counts(monkeypatch):
    server = Server(monkeypatch, 60.0, [(0.0, 0.5), (0.0, 0.002)])
    assert server.time - server.measured().now() <= timedelta(seconds=0.002)
    assert server.asked == 2


def test_a_long_round_trip_that_contradicts_nothing_is_not_made_again(monkeypatch):
    server = Server(monkeypatch, 60.0, [(0.0, 0.001), (0.0, 0.5)])
    clock = server.measured()
    before = server.time - clock.now()
    clock.measure("default")
    assert (server.asked, server.time - clock.now()) == (2, before)


def test_a_host_just_behind_the_database_never_sees_yesterday_at_midnight_I4(monkeypatch):
    server = Server(monkeypatch, 0.7, [(0.001, 0.001)])
    assert server.measured().now() == server.host.now()


def test_a_long_answer_does_not_undo_what_a_short_one_has_shown(monkeypatch):
    """It leaves open that this host's clock, which is ahead, is right."""
    server = Server(monkeypatch, -0.3, [(0.0, 0.001), (0.4, 0.4)])
    clock = server.measured()
    clock.measure("default")
    assert clock.now() <= server.time


def test_the_time_of_the_database_is_used_and_a_large_difference_is_said_once(monkeypatch, caplog):
    server = Server(monkeypatch, -5.0)
    clock = server.measured()
    for _ in range(2):
        clock.measure("default")
    assert clock.now() == at(-5)
    assert caplog.text.count("The clock of the database is 5 s behind this host's") == 1


def test_a_small_difference_is_used_without_a_word(monkeypatch, caplog):
    assert Server(monkeypatch, -0.5).measured().now() == at(-0.5)
    assert caplog.records == []


class SetInTheMiddle(ManualClock):
    """A host whose wall clock is set just before it is read for the `nth` time, wall and monotonic clock together."""

    def __init__(self, nth, step):
        super().__init__(T0)
        self.reads_left, self.step = nth, timedelta(seconds=step)

    def now(self):
        self.look()
        return super().now()

    def monotonic(self):
        self.look()
        return super().monotonic()

    def look(self):
        self.reads_left -= 1
        if self.reads_left == 0:
            self.set(super().now() + self.step)


@pytest.mark.parametrize("step", [7200, 0.3, -0.3, -7200])
@pytest.mark.parametrize("nth", range(1, 12))
@pytest.mark.parametrize("is_known", [False, True])
def test_a_clock_that_is_set_while_the_database_is_asked_is_not_taken_for_right_I4(monkeypatch, is_known, nth, step):
    """Between a reading before the step and one after it lies the time of the database, and any other.

    A host that is just behind the database goes by its own clock.
    """
    server = Server(monkeypatch)
    clock = DatabaseClock(server.host)
    if is_known:
        clock.measure("default")
    server.host = clock.local = clock._clock = SetInTheMiddle(nth, step)
    monkeypatch.setattr(Server, "time", T0)

    clock.measure("default")

    assert clock.now() in {T0, at(step) if -1 < step < 0 else T0}
