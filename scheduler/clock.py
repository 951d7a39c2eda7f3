"""The only reader of time: everything else is told `now` or is handed a `Clock`."""

import threading
import time
from datetime import UTC, datetime, timedelta
from typing import Protocol


class Clock(Protocol):
    """Where time comes from, and where waiting happens."""

    def now(self) -> datetime:
        """Return the wall clock as an aware UTC datetime."""
        ...

    def monotonic(self) -> float:
        """Return seconds on a clock that never goes back and ignores changes of the wall clock."""
        ...

    def wait(self, condition: threading.Condition, seconds: float) -> bool:
        """Wait on a held `condition` for at most `seconds`; True when it was notified."""
        ...


class SystemClock:
    """The clock of the operating system."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.monotonic()

    def wait(self, condition: threading.Condition, seconds: float) -> bool:
        return condition.wait(max(0.0, seconds))


SYSTEM_CLOCK = SystemClock()


class Distinct:
    """Hands out instants, none of them twice: the next microsecond where one is taken."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._last = datetime.min.replace(tzinfo=UTC)

    def __call__(self, now: datetime) -> datetime:
        """Return `now`, or the instant after the last one; where that lies far ahead, the clock was set back."""
        with self._lock:
            is_taken = now <= self._last < now + CLOCK_WAS_SET
            self._last = self._last + MICROSECOND if is_taken else now
            return self._last


MICROSECOND, CLOCK_WAS_SET = timedelta(microseconds=1), timedelta(minutes=1)
distinct = Distinct()
