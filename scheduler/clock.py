"""The only reader of time: everything else is told `now` or is handed a `Clock`."""

import threading
import time
from datetime import UTC, datetime
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
