"""Parts of a runner on a clock that only moves when told, with no thread."""

from dataclasses import dataclass, field

import pytest

from scheduler.clock import ManualClock
from scheduler.engine.base import Claimed, Engine
from scheduler.engine.claim_ahead import NO_REACH
from scheduler.engine.db import shared_time
from scheduler.executors.call import InThread, context_for
from scheduler.executors.live_run import Living
from scheduler.registry import Registry
from scheduler.runtime.database_clock import DatabaseClock
from scheduler.runtime.dispatcher import Dispatcher
from scheduler.runtime.heartbeat import Heartbeat
from scheduler.runtime.registration import Member
from scheduler.schedules import Every
from tests.factories import T0, make_registry


@dataclass
class StubPool:
    """Keeps what it is given."""

    free: int = 4
    submitted: list[Claimed] = field(default_factory=list)
    _living: list[Living] = field(default_factory=list)

    def capacity(self):
        return self.free - len(self.submitted)

    def task_capacity(self):
        return self.capacity()

    def reach(self):
        return NO_REACH

    def submit(self, *runs):
        self.submitted += runs
        self._living += [Living(claimed, context_for(claimed), InThread()) for claimed in runs]

    def living(self):
        return self._living

    def run_ids(self):
        return {one.claimed.run.pk for one in self._living}

    def withdraw(self, *, late=False):
        return []


class Parts:
    """One process, taken apart."""

    def __init__(self, tasks: Registry):
        self.manual = ManualClock(T0)
        self.clock = DatabaseClock(self.manual)
        self.engine = Engine(registry=tasks)
        self.pool = StubPool()
        self.member = Member(self.engine, self.clock, "test")
        self.dispatcher = Dispatcher(self.engine, self.member, self.pool, self.clock)
        self.heartbeat = Heartbeat(self.member, self.pool)

    def pass_time(self, seconds: float) -> None:
        """Let time pass in a process whose heart beats."""
        self.manual.advance(seconds)
        self.member.renew()


@pytest.fixture
def parts(monkeypatch):
    monkeypatch.setattr(shared_time, "CLOCK_QUERIES", {})
    return Parts(make_registry("task", schedule=Every(60)))
