"""The runner of this process: a start that fails leaves nothing behind, and a stop calls off a start that waits."""

import os
import sys
import threading

import pytest

from scheduler.exceptions import ConfigurationError
from scheduler.problems.process import of_this_process
from scheduler.runtime import current
from scheduler.runtime.startup import arm, forks
from scheduler.runtime.startup.detect import RUNNING_PID, StartDecision
from scheduler.runtime.startup.gate import Gate, Phase

PATIENCE = 10


class StubRunner:
    """Runs nothing, and may be told to fail."""

    made: "list[StubRunner]" = []
    fails_when = ""

    def __init__(self, by):
        self.by, self.does = by, []
        self._do("made")
        self.made.append(self)

    def _do(self, what):
        if self.fails_when == what:
            raise OSError(f"cannot be {what}")
        self.does.append(what)

    def start(self):
        self._do("started")

    def stop(self, seconds=None):
        self._do("stopped")

    def is_here(self):
        return True


@pytest.fixture(autouse=True)
def never_asked(monkeypatch):
    """A process whose scheduler was never asked to start."""
    monkeypatch.setattr(forks, "_gate", Gate())
    monkeypatch.setattr(forks, "watch", lambda gate: None)
    monkeypatch.setattr(current, "_stop_at_exit", lambda: None)
    monkeypatch.setattr(current.shutdown, "prepare", lambda *_: None)
    monkeypatch.setattr(current, "_runner", None)
    monkeypatch.setenv(RUNNING_PID, "")
    monkeypatch.delenv(RUNNING_PID)


@pytest.fixture
def runner(monkeypatch):
    """The class of runners, which here run nothing."""
    monkeypatch.setattr("scheduler.runtime.runner.Runner", StubRunner)
    monkeypatch.setattr(StubRunner, "made", [])
    monkeypatch.setattr(StubRunner, "fails_when", "")
    return StubRunner


@pytest.fixture
def serves(monkeypatch):
    """Arm this process as one that serves: `serves(start, delay=seconds)`."""

    def arm_now(start, *, delay):
        arm.arm(start, enabled=True, delay=delay)

    monkeypatch.setattr(arm, "decide_here", lambda *, enabled: StartDecision(True, "serves", "asgi", "uvicorn"))
    return arm_now


def nothing_waits():
    """Wait until no start waits, and none is going on."""
    for thread in threading.enumerate():
        if thread.name == "scheduler-start":
            thread.join(PATIENCE / 2)
            assert not thread.is_alive()
    return True


def shown():
    decision = arm.decision()
    return decision.start, decision.reason, decision.fault


@pytest.mark.parametrize("step", ["made", "started"])
def test_a_start_that_fails_is_shown_and_can_be_tried_again(runner, step):
    runner.fails_when = step
    with pytest.raises(OSError, match="cannot be"):
        current.start()
    assert shown() == (False, f"the start failed: cannot be {step}", True)
    assert (current.current(), os.environ.get(RUNNING_PID)) == (None, None)
    assert all(one.does == ["made", "stopped"] for one in runner.made), "none goes on half-way"
    runner.fails_when = ""
    current.start()
    assert shown() == (True, "scheduler.start() was called", False)
    assert current.current().does == ["made", "started"]


def test_a_start_with_a_wrong_setting_can_be_tried_again(settings):
    settings.SCHEDULER_LOCK_URL = "redis//oops"
    for _ in range(2):
        with pytest.raises(ConfigurationError, match="SCHEDULER_LOCK_URL"):
            current.start()


def test_an_automatic_start_that_fails_is_logged_and_makes_health_red(runner, serves, caplog):
    runner.fails_when = "made"
    serves(lambda: current.run("asgi"), delay=0)
    assert nothing_waits()
    assert [record.action for record in caplog.records] == ["start_failed"]
    assert shown() == (False, "the start failed: cannot be made", True)
    problem = "this process serves and cannot run the scheduler: the start failed: cannot be made"
    here = {"fault": arm.decision().fault, "reason": arm.decision().reason, "runs": False}
    assert [(one.severity, str(one)) for one in of_this_process(here, [])] == [("degraded", problem)]


def test_a_stop_calls_a_start_off_that_waits_and_it_can_be_asked_for_again(runner, serves):
    serves(lambda: current.run("asgi"), delay=PATIENCE)
    current.stop()
    assert nothing_waits()
    assert runner.made == []
    assert shown() == (False, "stopped", False)
    current.start()
    assert current.current().does == ["made", "started"]


def test_a_stop_that_comes_just_before_the_runner_is_made_calls_it_off(runner, serves):
    def start():
        current.stop()
        current.run("asgi")

    serves(start, delay=0)
    assert nothing_waits()
    assert (runner.made, current.current(), shown()) == ([], None, (False, "stopped", False))


def test_after_a_stop_it_can_be_started_again(runner):
    current.start()
    current.start()
    current.stop()
    assert [one.does for one in runner.made] == [["made", "started", "stopped"]]
    assert (shown(), os.environ.get(RUNNING_PID)) == ((False, "stopped", False), None)
    current.start()
    assert current.current().does == ["made", "started"]


def test_a_stop_where_nothing_was_started_is_no_error(runner):
    current.stop()
    assert (arm.decision(), forks.here().phase) == (None, Phase.CLOSED)


def test_a_start_in_a_script_takes_the_signals_that_would_end_it_I18(runner, monkeypatch):
    taken = []
    monkeypatch.setattr(current.shutdown, "prepare", lambda stop, server, frames: taken.append((stop, server)))
    current.start()
    assert taken == [(current.stop, "")]


def test_a_disabled_scheduler_stays_so(runner, monkeypatch):
    decision = StartDecision(False, "SCHEDULER_ENABLED is False", "disabled")
    monkeypatch.setattr(arm, "decide_here", lambda *, enabled: decision)
    arm.arm(lambda: None, enabled=False)
    current.stop()
    with pytest.raises(ConfigurationError, match="SCHEDULER_ENABLED is False"):
        current.start()


def test_a_start_that_cannot_import_what_it_needs_can_be_tried_again(monkeypatch):
    monkeypatch.setitem(sys.modules, "scheduler.runtime.runner", None)
    for _ in range(2):
        with pytest.raises(ImportError):
            current.start()


def test_the_failure_of_a_start_that_was_called_off_says_nothing_of_the_one_asked_for_since(runner, serves):
    def start():
        current.stop()
        current.start()
        raise OSError("late")

    serves(start, delay=0)
    assert nothing_waits()
    assert shown() == (True, "scheduler.start() was called", False)
