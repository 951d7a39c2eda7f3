"""The watchdog starts again what died or hangs, and leaves the rest alone."""

import threading
from dataclasses import dataclass

import pytest

from scheduler.clock import ManualClock
from scheduler.runtime.service import Service
from scheduler.runtime.watchdog import HUNG_AFTER, LOOK_EVERY, Watchdog


@dataclass
class StubService:
    alive: bool = True
    silent: float = 1.0
    name: str = "dispatcher"
    starts: int = 0

    def left_behind(self):
        return 0

    def is_alive(self):
        return self.alive

    def age(self):
        return self.silent

    def start(self):
        self.starts += 1
        self.alive, self.silent = True, 0.0


def pass_time(clock, watchdog, seconds):
    """Let the watchdog look as often as it wants to."""
    for _ in range(round(seconds / LOOK_EVERY)):
        clock.advance(LOOK_EVERY)
        assert watchdog.step() == LOOK_EVERY


@pytest.mark.parametrize(
    ("service", "starts", "said"),
    [
        (StubService(), 0, ""),
        (StubService(alive=False), 1, "died"),
        (StubService(silent=HUNG_AFTER - 1), 0, ""),
        (StubService(silent=HUNG_AFTER + 1), 1, "no sign of life"),
    ],
)
def test_what_died_or_hangs_is_started_once_N1(service, starts, said, caplog):
    healthy = StubService(name="recorder")
    clock = ManualClock()
    watchdog = Watchdog([healthy, service], clock)
    pass_time(clock, watchdog, 2 * HUNG_AFTER)
    assert (service.starts, healthy.starts, watchdog.restarts) == (starts, 0, starts)
    assert said in caplog.text


class Locked:
    """Five services whose every step hangs, as at a table that is locked."""

    def __init__(self):
        self.clock, self.let_go = ManualClock(), threading.Event()
        self.services = [Service(name, self.step, self.clock) for name in ("a", "b", "c", "d", "e")]
        self.watchdog = Watchdog(self.services, self.clock)
        for service in self.services:
            service.start()

    def step(self):
        assert self.let_go.wait(10)
        return 60.0

    def threads(self):
        return sum(service.is_alive() + service.left_behind() for service in self.services)


@pytest.fixture
def locked():
    services = Locked()
    yield services
    services.let_go.set()
    for service in services.services:
        service.stop()
        service._thread.join(10)


def test_while_everything_hangs_each_service_has_one_thread_more_and_the_alarm_is_raised_once_N1(locked, caplog):
    pass_time(locked.clock, locked.watchdog, 15 * 60)
    assert locked.threads() == 2 * len(locked.services)
    assert locked.watchdog.restarts == len(locked.services)
    assert locked.watchdog.hanging == {"a", "b", "c", "d", "e"}
    said = [record.getMessage() for record in caplog.records if getattr(record, "action", "") == "service_hangs"]
    assert len(said) == len(locked.services)
    assert "its replacement" in said[0]


def test_what_hung_and_goes_on_again_is_no_alarm_any_more_N1(locked):
    pass_time(locked.clock, locked.watchdog, 15 * 60)
    left = [thread for service in locked.services for thread in service._left_behind]
    locked.let_go.set()
    for thread in left:
        thread.join(10)
        assert not thread.is_alive()
    for service in locked.services:
        service.beat = locked.clock.monotonic()
    pass_time(locked.clock, locked.watchdog, LOOK_EVERY)
    assert locked.watchdog.hanging == set()
    assert locked.threads() == len(locked.services)


def test_a_process_that_was_frozen_replaces_nobody_for_that_N1():
    """Neither had the others a chance to give a sign of life, and two threads of each only get in each other's way."""
    clock, service = ManualClock(), StubService(silent=1000.0)
    watchdog = Watchdog([service], clock)
    clock.advance(1000)
    watchdog.step()
    assert service.starts == 0
    pass_time(clock, watchdog, HUNG_AFTER - LOOK_EVERY)
    assert service.starts == 0
    pass_time(clock, watchdog, 2 * LOOK_EVERY)
    assert service.starts == 1
