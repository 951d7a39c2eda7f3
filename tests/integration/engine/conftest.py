"""What tests of the public API need."""

import pytest

from scheduler.clock import SYSTEM_CLOCK, ManualClock
from scheduler.engine.db import shared_time
from scheduler.registry import register, registry
from tests.factories import T0


@pytest.fixture
def known():
    """The process-wide registry with one task, “task”; what a test adds is forgotten afterwards."""
    before = registry.names()
    register("task")(lambda **kwargs: None)
    yield registry
    for name in set(registry.names()) - set(before):
        registry.remove(name)


@pytest.fixture
def clock(monkeypatch):
    """A clock at T0 that the public API goes by."""
    manual = ManualClock(T0)
    monkeypatch.setattr(SYSTEM_CLOCK, "now", manual.now)
    monkeypatch.setattr(shared_time, "CLOCK_QUERIES", {})
    return manual
