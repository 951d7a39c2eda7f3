"""The clock that all instances share: this host's clock, corrected by what the database's clock says."""

import logging
import threading
from datetime import datetime, timedelta

from scheduler.clock import Clock
from scheduler.engine import dbtime

logger = logging.getLogger("scheduler")

WORTH_A_WARNING = timedelta(seconds=1)
SURE = timedelta(milliseconds=50)
"""Half of a round trip that is short enough to say that the database was asked in the middle of it."""


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
        """Ask the database for its time, as it was in the middle of the round trip.

        An answer that took long says little: one that does not contradict what is known changes nothing, and of the
        times that it leaves open the earliest is taken, since nothing may start before its slot.
        """
        before = self._clock.monotonic()
        answer = dbtime.database_time(using)
        if answer is None:
            return
        doubt = timedelta(seconds=self._clock.monotonic() - before) / 2
        theirs = answer + doubt
        if self._read is None or abs(theirs - self.now()) > doubt:
            self._adopt((theirs if doubt <= SURE else answer) - self._clock.now())
        else:
            self.offset = self.now() - self._clock.now()

    def _adopt(self, offset: timedelta) -> None:
        if abs(offset) > WORTH_A_WARNING and abs(offset - self.offset) > WORTH_A_WARNING:
            logger.warning(
                "The clock of the database is %+.1f s from this host's; the database's is used",
                offset.total_seconds(),
                extra={"action": "clock_skew", "seconds": offset.total_seconds()},
            )
        self.offset = offset
        self._read = self._clock.now() + offset, self._clock.monotonic()


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
