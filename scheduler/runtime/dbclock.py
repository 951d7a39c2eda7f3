"""The clock that all instances share: this host's clock, corrected by what the database's clock says."""

import logging
import threading
from datetime import UTC, datetime, timedelta

from django.db import connections

from scheduler.clock import Clock

logger = logging.getLogger("scheduler")

WORTH_A_WARNING = timedelta(seconds=1)
CLOCK_QUERIES = {"postgresql": "SELECT clock_timestamp()", "mysql": "SELECT UTC_TIMESTAMP(6)"}


class DatabaseClock:
    """Local time plus the measured offset to the database. With SQLite both are one clock."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.offset = timedelta(0)

    def now(self) -> datetime:
        return self._clock.now() + self.offset

    def monotonic(self) -> float:
        return self._clock.monotonic()

    def wait(self, condition: threading.Condition, seconds: float) -> bool:
        return self._clock.wait(condition, seconds)

    def measure(self, using: str) -> None:
        """Ask the database for its time; half of the round trip is taken off."""
        query = CLOCK_QUERIES.get(connections[using].vendor)
        if query is None:
            return
        before, asked_at = self._clock.monotonic(), self._clock.now()
        with connections[using].cursor() as cursor:
            cursor.execute(query)
            (answer,) = cursor.fetchone()
        trip = timedelta(seconds=self._clock.monotonic() - before)
        theirs = answer if answer.tzinfo else answer.replace(tzinfo=UTC)
        self._adopt(theirs - asked_at - trip / 2)

    def _adopt(self, offset: timedelta) -> None:
        if abs(offset) > WORTH_A_WARNING and abs(offset - self.offset) > WORTH_A_WARNING:
            logger.warning(
                "The clock of the database is %+.1f s from this host's; the database's is used",
                offset.total_seconds(),
                extra={"action": "clock_skew", "seconds": offset.total_seconds()},
            )
        self.offset = offset


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
