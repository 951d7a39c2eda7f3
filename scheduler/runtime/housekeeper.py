"""Housekeeper: keeps the run log small, a little at a time."""

from scheduler.clock import Clock
from scheduler.engine.base import Engine
from scheduler.engine.prune import prune_some
from scheduler.runtime.member import Member

AFTER_WORK = 1.0
BETWEEN_LOOKS = 60.0
BETWEEN_ROUNDS = 600.0


class Housekeeper:
    """The step of the housekeeper thread: about 50 ms of pruning, at once again only while there is something to do."""

    def __init__(self, engine: Engine, member: Member, clock: Clock) -> None:
        self._engine = engine
        self._member = member
        self._clock = clock
        self._cursor: int | None = None
        self._rests_until = clock.monotonic() + BETWEEN_LOOKS  # a process that starts has better things to do

    def step(self) -> float:
        """Prune a little; return the seconds until the next time."""
        if self._clock.monotonic() < self._rests_until or not self._member.may_claim():
            return BETWEEN_LOOKS
        pruned, self._cursor = prune_some(self._engine, self._clock.now(), self._cursor)
        if pruned.total:
            return AFTER_WORK
        if self._cursor is None:
            self._rests_until = self._clock.monotonic() + BETWEEN_ROUNDS
        return BETWEEN_LOOKS
