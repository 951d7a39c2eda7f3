"""Housekeeper: keeps the run log small, a little at a time, and looks who else is there."""

from collections.abc import Callable

from scheduler.clock import Clock
from scheduler.engine.base import Engine
from scheduler.engine.control.keyed import forget_keys
from scheduler.engine.retention.day_totals import compare_some, forget_days
from scheduler.engine.retention.keep import Retention
from scheduler.engine.retention.prune import prune_some
from scheduler.engine.retention.prune_events import prune_events
from scheduler.engine.retention.tasks import forget_run_keys
from scheduler.engine.retention.usual import forget_deleted, measure_some
from scheduler.runtime.registration import Member

AFTER_WORK = 1.0
BETWEEN_LOOKS = 60.0
BETWEEN_ROUNDS = 600.0


class Housekeeper:
    """The step of the housekeeper thread: about 50 ms of pruning, at once again only while there is something to do."""

    def __init__(
        self, engine: Engine, member: Member, clock: Clock, look_around: Callable[[], None] = lambda: None
    ) -> None:
        self._engine = engine
        self._member = member
        self._clock = clock
        self._look_around = look_around
        self._cursor: int | None = None
        self._has_been_round = False
        self._compared = 0
        self._rests_until = clock.monotonic() + BETWEEN_LOOKS  # a process that starts has better things to do

    def step(self) -> float:
        """Prune a little; return the seconds until the next time."""
        self._look_around()
        if self._clock.monotonic() < self._rests_until or not self._member.may_claim():
            return BETWEEN_LOOKS
        if self._has_been_round:  # in a step of its own, as each part of the run log
            if measure_some(self._engine.using, self._clock.now()):
                return AFTER_WORK
            prune_events(self._engine.using, self._clock.now(), Retention.from_settings())
            forget_deleted(self._engine.using)
            forget_days(self._engine.using, self._clock.now())
            self._compared = compare_some(self._engine.using, self._compared)
            forget_keys(self._engine.using, self._clock.now())
            forget_run_keys(self._engine.using, self._clock.now())
            self._has_been_round = False
            self._rests_until = self._clock.monotonic() + BETWEEN_ROUNDS
            return BETWEEN_LOOKS
        pruned, self._cursor = prune_some(self._engine, self._clock.now(), self._cursor)
        if pruned.total:
            return AFTER_WORK
        self._has_been_round = self._cursor is None
        return BETWEEN_LOOKS
