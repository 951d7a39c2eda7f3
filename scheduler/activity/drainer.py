"""Drainer: looks again and again for users whose runs are due, and for those whose runs have ended."""

from collections.abc import Callable

from scheduler.activity.service import drain
from scheduler.activity.store.chosen import chosen_store
from scheduler.clock import Clock
from scheduler.conf import conf
from scheduler.engine.base import Engine
from scheduler.engine.outcome import Settled
from scheduler.models import Trigger

WAIT_TO_JOIN = 1.0


class Drainer:
    """The step of the activity thread, which a process has whose code registers a task with `OnActivity`."""

    def __init__(
        self, engine: Engine, may_claim: Callable[[], bool], clock: Clock, wake: Callable[[], None] = lambda: None
    ) -> None:
        self._engine = engine
        self._may_claim = may_claim
        self._clock = clock
        self._wake = wake

    def step(self) -> float:
        """Look once; return the seconds until the next time. The end of a run wakes it earlier."""
        if not self._may_claim():
            return WAIT_TO_JOIN
        drain(self._engine, chosen_store(self._engine.using), self._clock.now())
        return conf.CHECK_INTERVAL

    def settled(self, settled: Settled) -> None:
        """Look now if runs for users have ended: others may have their place."""
        if any(run.trigger == Trigger.ACTIVITY for run in settled.finished):
            self._wake()
