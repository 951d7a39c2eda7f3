"""The clock that all instances share: this host's clock, corrected by what the database's clock says."""

import logging
import threading
from dataclasses import dataclass
from datetime import datetime, timedelta

from scheduler.clock import Clock
from scheduler.engine.db import shared_time
from scheduler.schedules.duration import length_words

logger = logging.getLogger("scheduler")

WORTH_A_WARNING = timedelta(seconds=1)
SHORT = 0.005
"""Seconds of a round trip after which asking again would not tell more."""
TRIES = 3


@dataclass(frozen=True, slots=True)
class Answer:
    """What the database said its time was, at some moment between two readings of our clocks."""

    time: datetime
    wall_before: datetime
    before: float
    after: float
    wall_after: datetime

    @property
    def took(self) -> float:
        return self.after - self.before

    @property
    def earliest(self) -> timedelta:
        """How far the database's clock is ahead of this host's at least."""
        return self.time - self.wall_after

    @property
    def is_steady(self) -> bool:
        """Whether nothing has set this host's clock between the two readings: it went as far as the monotonic one."""
        went = (self.wall_after - self.wall_before).total_seconds()
        return abs(went - self.took) <= SHORT

    def allows_this_host(self) -> bool:
        """Whether this host's clock may be right. Readings before and after a step of it allow any time between."""
        return self.is_steady and self.wall_before <= self.time <= self.wall_after

    def allows(self, then: datetime, at: float) -> bool:
        """Whether it may have been `then` at the monotonic time `at`."""
        return then + timedelta(seconds=self.before - at) <= self.time <= then + timedelta(seconds=self.after - at)


class DatabaseClock:
    """The time of the database as it was read last, carried on by the monotonic clock.

    A step of this host's clock does not change it. With SQLite there is only this host's clock.
    """

    def __init__(self, clock: Clock) -> None:
        self.local = clock
        self.offset = timedelta(0)
        """How far the database's clock is ahead of this host's."""
        self._clock = clock
        self._read: tuple[datetime, float] | None = None

    def now(self) -> datetime:
        if self._read is None:
            return self._clock.now()
        then, at = self._read
        return then + timedelta(seconds=self._clock.monotonic() - at)

    def monotonic(self) -> float:
        return self._clock.monotonic()

    def wait(self, condition: threading.Condition, seconds: float) -> bool:
        return self._clock.wait(condition, seconds)

    def measure(self, using: str) -> None:
        """Ask the database for its time. Nothing may start before its slot: the first of these that is allowed is used.

        1. this host's clock, 2. the time that is known (first after a long round trip, which says little), 3. the
        earliest time. A host that is up to a second behind the database goes by its own clock, too: a task that starts
        at midnight and asks for the date must not see yesterday.
        """
        shared_time.connect(using)  # else the first answer would leave open as much time as that takes
        best: Answer | None = None
        for _ in range(TRIES):
            answer = self._ask(using)
            if answer is None:
                return
            best = answer if best is None else min(best, answer, key=lambda one: (not one.is_steady, one.took))
            if best.is_steady and (best.took <= SHORT or self._is_explained(best)):
                break
        if best is not None:
            self._learn(best)

    def _ask(self, using: str) -> Answer | None:
        wall, before = self._clock.now(), self._clock.monotonic()
        time = shared_time.database_time(using)
        return None if time is None else Answer(time, wall, before, self._clock.monotonic(), self._clock.now())

    def _is_explained(self, answer: Answer) -> bool:
        """Whether the answer contradicts nothing that is known."""
        return self._read is not None and answer.allows(*self._read)

    def _learn(self, answer: Answer) -> None:
        known = self._is_explained(answer)
        if answer.allows_this_host() and (answer.took <= SHORT or not known):
            self._go_by_this_host(answer)
        elif known:
            self.offset = self.now() - self._clock.now()
        elif answer.is_steady and timedelta(0) < answer.earliest <= WORTH_A_WARNING:
            self._go_by_this_host(answer)
        else:
            self._go_by(answer.time, answer.after, offset=answer.earliest)

    def _go_by_this_host(self, answer: Answer) -> None:
        self._go_by(answer.wall_before, answer.before, offset=timedelta(0))

    def _go_by(self, then: datetime, at: float, *, offset: timedelta) -> None:
        """It was `then` at the monotonic time `at`. Nothing is read again: a clock may have been set since."""
        if abs(offset) > WORTH_A_WARNING and abs(offset - self.offset) > WORTH_A_WARNING:
            logger.warning(
                "The clock of the database is %s %s this host's; the database's is used",
                length_words(offset),
                "ahead of" if offset > timedelta(0) else "behind",
                extra={"action": "clock_skew", "seconds": offset.total_seconds()},
            )
        self.offset = offset
        self._read = then, at


class StepWatch:
    """Notices when the wall clock moves by itself, by comparing it with the monotonic clock."""

    TOLERANCE = timedelta(seconds=2)

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._wall, self._monotonic = clock.now(), clock.monotonic()

    def step(self) -> timedelta:
        """Return how far the clock was moved since the last call, zero within the tolerance."""
        wall, monotonic = self._clock.now(), self._clock.monotonic()
        moved = (wall - self._wall) - timedelta(seconds=monotonic - self._monotonic)
        self._wall, self._monotonic = wall, monotonic
        return moved if abs(moved) > self.TOLERANCE else timedelta(0)
