"""What plays and processes of these tests are given: the public API's registry and clock, and a process to step."""

import pytest
from django.db import transaction

from scheduler.clock import SYSTEM_CLOCK, ManualClock
from scheduler.engine.db import shared_time
from scheduler.registry import register, registry
from tests.factories import T0
from tests.integration.rules.play import Play
from tests.integration.rules.process import SteppedProcess


@pytest.fixture
def known():
    """The process-wide registry, which the public API asks, with one task “task”; put back afterwards."""
    before = {task.name: task for task in registry}
    register("task")(lambda: None)
    yield registry
    for name in registry.names():
        registry.remove(name)
    for task in before.values():
        registry.add(task)


@pytest.fixture
def clock(monkeypatch):
    """A clock at T0 that the public API goes by."""
    manual = ManualClock(T0)
    monkeypatch.setattr(SYSTEM_CLOCK, "now", manual.now)
    monkeypatch.setattr(shared_time, "CLOCK_QUERIES", {})
    return manual


@pytest.fixture
def commits(monkeypatch):
    """What a test does counts as committed at once: its own transaction never is."""
    monkeypatch.setattr(transaction, "on_commit", lambda send, **_: send())


@pytest.fixture
def play(known, clock, commits):
    plays = Play(known, clock)
    yield plays
    plays.close()


@pytest.fixture
def start(known, commits, monkeypatch):
    """Start a process whose service threads the test steps itself: `start(task=…, workers=…)`."""
    monkeypatch.setattr(shared_time, "CLOCK_QUERIES", {})
    started = []

    def make(**options) -> SteppedProcess:
        process = SteppedProcess(known, **options)
        monkeypatch.setattr(SYSTEM_CLOCK, "now", process.clock.now)
        started.append(process)
        return process

    yield make
    for process in started:
        process.shut()
