"""People who are told: a notifier that the test steps, and a channel that keeps what it is given."""

import pytest

from scheduler.clock import SYSTEM_CLOCK, ManualClock
from scheduler.engine.db import shared_time
from scheduler.notifications.channels.base import SendFailed
from scheduler.notifications.service import Notifier
from scheduler.registry import register, registry
from tests.factories import T0, make_engine


class Office:
    """Those who are told. `away` is what they fail with."""

    def __init__(self, clock):
        self.clock, self.messages, self.away = clock, [], None
        self.engine = make_engine()
        self.notifier = Notifier(self.engine, lambda: True, clock)
        self.notifier._deliver = self.deliver
        self.calls = 0

    def deliver(self, channel, message):
        self.calls += 1
        if self.away:
            raise self.away
        self.messages.append((channel.name, message))

    def step(self, now=None):
        """Let time pass until `now`, look and send; returns what was told: the event and the job of each."""
        if now is not None:
            self.clock.move_to(now)
        before = len(self.messages)
        self.notifier.step()
        return [(event.event, event.job) for _, message in self.messages[before:] for event in message.events]

    def texts(self):
        return [event for _, message in self.messages for event in message.events]


@pytest.fixture
def known():
    """The process-wide registry, which the public API asks, with one task “task”; put back afterwards."""
    register("task")(lambda **kwargs: None)
    yield registry
    registry.remove("task")


@pytest.fixture
def clock(monkeypatch):
    manual = ManualClock(T0)
    monkeypatch.setattr(SYSTEM_CLOCK, "now", manual.now)
    monkeypatch.setattr(shared_time, "CLOCK_QUERIES", {})
    return manual


@pytest.fixture
def office(db, settings, clock):
    settings.SCHEDULER_NOTIFY = [{"channel": "email", "to": ["ops@example.com"]}]
    return Office(clock)


@pytest.fixture
def away():
    return SendFailed("connection refused")
