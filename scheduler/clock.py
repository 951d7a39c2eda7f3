"""The only reader of time: everything else is told `now` or is handed a `Clock`."""

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from scheduler.context import RunContext


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
        self._last = datetime.min.replace(tzinfo=UTC)
        self.renew_lock()

    def renew_lock(self) -> None:
        """Have a lock of our own: a child may be forked while another thread of its parent holds this one."""
        self._lock = threading.Lock()

    def __call__(self, now: datetime) -> datetime:
        """Return `now`, or the instant after the last one; where that lies far ahead, the clock was set back."""
        with self._lock:
            is_taken = now <= self._last < now + CLOCK_WAS_SET
            self._last = self._last + MICROSECOND if is_taken else now
            return self._last


MICROSECOND, CLOCK_WAS_SET = timedelta(microseconds=1), timedelta(minutes=1)
distinct = Distinct()
if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=distinct.renew_lock)

NEW_YEAR = datetime(2026, 1, 1, tzinfo=UTC)


class ManualClock:
    """A clock that stands still until it is moved. Waiting moves it by the time waited for, and never sleeps."""

    def __init__(self, now: datetime = NEW_YEAR) -> None:
        self._now = now
        self._monotonic = 0.0
        self._timed: list[tuple[RunContext, float]] = []

    def now(self) -> datetime:
        return self._now

    def monotonic(self) -> float:
        return self._monotonic

    def wait(self, condition: threading.Condition, seconds: float) -> bool:
        """Release `condition` to other threads for a moment and advance by `seconds`; True if it was notified."""
        notified = condition.wait(0)
        if not notified:
            self.advance(max(0.0, seconds))
        return notified

    def advance(self, by: timedelta | float) -> None:
        """Let time pass: a `timedelta`, or seconds."""
        passed = by if isinstance(by, timedelta) else timedelta(seconds=by)
        self._now += passed
        self._monotonic += passed.total_seconds()
        for context, ends in self._timed:
            if self._monotonic >= ends and not context.timed_out:
                context.timed_out = True
                context.request_stop("timeout")

    @contextmanager
    def timing(self, context: "RunContext", timeout: timedelta | None) -> Iterator[None]:
        """Time a run out, and ask it to stop, when its timeout passes in this block."""
        if timeout is not None:
            self._timed.append((context, self._monotonic + timeout.total_seconds()))
        try:
            yield
        finally:
            self._timed = [one for one in self._timed if one[0] is not context]

    def move_to(self, now: datetime) -> None:
        """Let time pass until `now`; nothing happens when that is past."""
        self.advance(max(timedelta(0), now - self._now))

    def set(self, now: datetime) -> None:
        """Set the wall clock, forward or back, as a person or NTP does: no time passes."""
        self._now = now
