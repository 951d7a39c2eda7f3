"""A service goes on whatever its step does, waits as told, and says little. Real threads, a clock that only jumps."""

import logging
import threading
from dataclasses import dataclass
from datetime import timedelta
from itertools import pairwise
from types import SimpleNamespace

import pytest
from django.db import OperationalError

from scheduler.clock import SYSTEM_CLOCK, ManualClock
from scheduler.runtime.service import LOG_EVERY, RETRY_SECONDS, Service, was_replaced


def run(steps):
    """Run a service whose passes are `steps`: seconds to wait, or errors. Returns it and the instants of its passes."""
    clock = ManualClock()
    left, passes = list(steps), []

    def step():
        passes.append(clock.monotonic())
        if not left:
            service.stop()
            return 0.0
        outcome = left.pop(0)
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome(service) if callable(outcome) else outcome

    service = Service("dispatcher", step, clock)
    service.start()
    service._thread.join(10)
    assert not service.is_alive()
    return service, passes


def waits(steps):
    _, passes = run(steps)
    return [round(later - before, 3) for before, later in pairwise(passes)]


def test_it_waits_as_long_as_its_step_says():
    assert waits([5.0, 0.0, 2.5]) == [5.0, 0.0, 2.5]


def test_no_wait_is_longer_than_a_minute():
    assert waits([1e9]) == [60.0]


def test_a_wake_up_during_a_step_is_not_lost():
    assert waits([lambda service: service.wake() or 30.0, 3.0]) == [0.0, 3.0]


@pytest.mark.parametrize("error", [ValueError("x"), OperationalError("gone away"), MemoryError(), RecursionError()])
def test_it_survives_any_error_and_remembers_it_N1(error):
    service, passes = run([1.0, error, 1.0])
    assert len(passes) == 4
    assert service.errors == 1
    assert service.last_error.startswith(type(error).__name__)


def test_errors_in_a_row_wait_longer_and_a_good_pass_starts_over_B1():
    errors = [OperationalError("down")] * 8
    assert waits([*errors, 1.0, errors[0]]) == [*RETRY_SECONDS, 5.0, 5.0, 1.0, 0.0]


def test_a_single_error_is_not_worth_a_line(caplog):
    run([OperationalError("an idle connection was dropped"), 1.0])
    assert caplog.records == []


def test_an_outage_is_logged_once_in_five_seconds_at_most_B1(caplog):
    _, passes = run([OperationalError("down")] * 50)
    lines = [record for record in caplog.records if getattr(record, "action", "") == "service_error"]
    assert 1 < len(lines) <= passes[-1] / LOG_EVERY + 1
    assert all(record.levelno == logging.ERROR for record in lines)
    assert "dispatcher" in lines[0].getMessage().lower()


def test_its_age_is_the_time_since_it_last_gave_a_sign_of_life():
    clock = ManualClock()
    service = Service("x", lambda: 0.0, clock)
    clock.advance(timedelta(minutes=2))
    assert service.age() == 120


def test_a_replaced_thread_ends_at_its_next_look():
    """The watchdog starts a new thread beside one that hangs; the old one must not go on as a second loop."""
    threads, ended = [], threading.Event()

    def step():
        threads.append(threading.current_thread())
        if len(threads) == 1:
            service.start()
        else:
            service.stop()
            ended.set()
        return 0.0

    service = Service("x", step, ManualClock())
    service.start()
    assert ended.wait(10)
    for thread in threads:
        thread.join(10)
        assert not thread.is_alive()
    assert len(set(threads)) == len(threads) == 2


@dataclass
class StubConnection:
    """One of the connections of a thread."""

    options: dict[str, object]
    in_atomic_block: bool = False
    fails: bool = False
    closed: int = 0

    @property
    def settings_dict(self):
        return {"OPTIONS": self.options}

    def close(self):
        self.closed += 1
        if self.fails:
            raise OperationalError("the pool is closed")


@pytest.fixture
def held(monkeypatch):
    """What connections a thread has: the list may be filled."""
    found = []
    handler = SimpleNamespace(all=lambda *, initialized_only: found)
    monkeypatch.setattr("scheduler.executors.connections.connections", handler)
    return found


class TestConnectionsOfAPool:
    """Those that a thread keeps while it waits are missing to whoever serves requests in the same process."""

    @pytest.mark.parametrize("pool", [True, {"max_size": 4}])
    @pytest.mark.parametrize("step", [60.0, ValueError("x")])
    def test_they_are_given_back_before_a_wait(self, held, pool, step):
        held.append(StubConnection({"pool": pool}))
        run([step, step] if isinstance(step, ValueError) else [step])
        assert held[0].closed == 1

    def test_they_are_kept_between_two_passes_without_a_wait(self, held):
        held.append(StubConnection({"pool": True}))
        run([0.0, 0.0])
        assert held[0].closed == 0

    @pytest.mark.parametrize("options", [{}, {"pool": False}, {"pool": {}}])
    def test_without_a_pool_a_connection_is_kept(self, held, options):
        held.append(StubConnection(options))
        run([1.0, 1.0])
        assert held[0].closed == 0

    def test_one_in_somebodys_transaction_is_left_alone(self, held):
        held.append(StubConnection({"pool": True}, in_atomic_block=True))
        run([1.0])
        assert held[0].closed == 0

    def test_one_that_cannot_be_given_back_keeps_no_other_and_ends_no_thread_N1(self, held):
        held += [StubConnection({"pool": True}, fails=True), StubConnection({"pool": True})]
        _, passes = run([1.0, 1.0])
        assert (len(passes), [one.closed for one in held]) == (3, [2, 2])


class HangingStep:
    """A step that hangs at its first pass until it is let go; the later passes are counted, and may hang too."""

    def __init__(self):
        self.passes = threading.Semaphore(0)
        self.entered, self.let_go, self.came_back = (threading.Event() for _ in range(3))
        self.may_pass = threading.Event()
        self.may_pass.set()
        self.replaced = []

    def __call__(self):
        if not self.entered.is_set():
            self.entered.set()
            assert self.let_go.wait(10)
            self.replaced.append(was_replaced())
            self.came_back.set()
            return 60.0
        self.passes.release()
        assert self.may_pass.wait(10)
        self.replaced.append(was_replaced())
        return 60.0


@pytest.fixture
def hanging():
    """A service whose first thread hangs, and which has been started a second time."""
    step = HangingStep()
    step.service = Service("recorder", step, SYSTEM_CLOCK)
    step.service.start()
    assert step.entered.wait(10)
    step.first = step.service._thread
    yield step
    step.let_go.set()
    step.may_pass.set()
    step.service.stop()
    assert step.service.join(10)


def test_a_thread_that_comes_back_after_it_was_replaced_ends_and_takes_no_wake_up_with_it_N1(hanging):
    hanging.may_pass.clear()
    hanging.service.start()
    assert hanging.passes.acquire(timeout=10)
    hanging.service.wake()
    hanging.let_go.set()
    hanging.first.join(10)
    assert not hanging.first.is_alive(), "it waits beside the thread that replaced it"
    hanging.may_pass.set()
    assert hanging.passes.acquire(timeout=10), "the wake-up is lost"


def test_a_thread_that_waits_when_it_is_replaced_ends_N1(hanging):
    hanging.let_go.set()
    assert hanging.came_back.wait(10)
    hanging.service.start()
    hanging.first.join(10)
    assert not hanging.first.is_alive()
    assert hanging.passes.acquire(timeout=10)


def test_a_step_can_tell_whether_its_thread_was_replaced_N1(hanging):
    hanging.service.start()
    assert hanging.passes.acquire(timeout=10)
    assert hanging.service.left_behind() == 1
    hanging.let_go.set()
    hanging.first.join(10)
    assert hanging.service.left_behind() == 0
    assert sorted(hanging.replaced) == [False, True]


def test_a_thread_that_was_replaced_gives_no_sign_of_life_for_its_service_N1():
    clock, entered = ManualClock(), threading.Semaphore(0)
    gates = [threading.Event(), threading.Event()]
    left = iter(gates)

    def step():
        gate = next(left)
        entered.release()
        assert gate.wait(10)
        return 60.0

    service = Service("recorder", step, clock)
    threads = []
    for _ in gates:
        service.start()
        assert entered.acquire(timeout=10)
        threads.append(service._thread)
    clock.advance(100)
    gates[0].set()
    threads[0].join(10)
    assert service.age() == 100
    service.stop()
    gates[1].set()
    threads[1].join(10)
    assert service.join(0), "it has ended, so there is nothing to wait for"
