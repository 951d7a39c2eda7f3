"""Drainer: looks again and again for users whose runs are due, and for those whose runs have ended."""

from scheduler.activity.stores import chosen_store
from scheduler.clock import Clock
from scheduler.conf import conf
from scheduler.engine.activity import drain
from scheduler.engine.base import Engine
from scheduler.runtime.member import Member

WAIT_TO_JOIN = 1.0


class Drainer:
    """The step of the activity thread, which a process has whose code registers a task with `OnActivity`."""

    def __init__(self, engine: Engine, member: Member, clock: Clock) -> None:
        self._engine = engine
        self._member = member
        self._clock = clock

    def step(self) -> float:
        """Look once; return the seconds until the next time. The end of a run wakes it earlier."""
        if not self._member.may_claim():
            return WAIT_TO_JOIN
        drain(self._engine, chosen_store(self._engine.using), self._clock.now())
        return conf.CHECK_INTERVAL
