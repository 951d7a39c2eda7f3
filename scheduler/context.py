"""What a running task can know and say about its run."""

import logging
import threading
from collections import deque
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from scheduler.arguments import checked_number, checked_text
from scheduler.exceptions import InvalidOption, SchedulerError
from scheduler.schedules.base import NO_TIME
from scheduler.schedules.duration import LONGEST


class LogLines:
    """Lines of a log, the newest kept within a number of characters."""

    __slots__ = ("_dropped", "_lines", "_size", "limit", "written")

    def __init__(self, limit: int) -> None:
        self._lines: deque[str] = deque()
        self._size = self._dropped = 0
        self.limit = limit
        self.written = 0
        """How many lines were ever added; tells whether there is something new."""

    def append(self, line: str) -> None:
        """Add a line; the oldest ones go when there is no room."""
        self.written += 1
        self._lines.append(line)
        self._size += len(line) + 1
        while self._size > self.limit and len(self._lines) > 1:
            self._dropped += 1
            self._size -= len(self._lines.popleft()) + 1

    def text(self) -> str:
        """Return the lines, and how many are gone."""
        head = f"… {self._dropped} earlier lines dropped …\n" if self._dropped else ""
        return head + "\n".join(self._lines)


class RunStopped(SchedulerError):
    """The run was asked to stop and the task agreed (`context.check_stop()`)."""


class Postpone(SchedulerError):
    """The task asks to be started again later; this is no failure, and the slot stays the same."""

    def __init__(self, message: str = "", *, seconds: float = 0, minutes: float = 0, hours: float = 0) -> None:
        if not isinstance(message, str):
            raise InvalidOption(f"the reason of Postpone is {message!r}; it must be a string.")
        super().__init__(message or None)
        self.reason = message
        try:
            self.delay = timedelta(seconds=seconds, minutes=minutes, hours=hours)
        except (TypeError, ValueError, OverflowError):
            self.delay = NO_TIME
        if not NO_TIME < self.delay <= LONGEST:
            raise InvalidOption("Postpone needs a time of at most 100 years, for example Postpone(minutes=60).")


@dataclass(slots=True, kw_only=True)
class RunContext:
    """One run, seen from inside its task. All instants are aware UTC datetimes."""

    run_id: int
    job: str
    task: str
    scheduled_for: datetime
    attempt: int
    trigger: str
    fencing_token: int
    lock_fence: int | None = None
    """Grows with each run of the job on any host that shares SCHEDULER_LOCK_URL; None where no lock was taken."""
    last_run_at: datetime | None = None
    state: dict[str, Any] = field(default_factory=dict)
    """Kept between the runs of a job (JSON, at most 64 KB and 30 levels deep), saved whatever the outcome."""
    logger: logging.Logger = field(default_factory=lambda: logging.getLogger("scheduler.task"))
    log: LogLines = field(default_factory=lambda: LogLines(64_000), repr=False)
    stop_reason: str = ""
    """Why the run was asked to stop: shutdown, cancelled, replaced, timeout or lease; empty when it was not."""
    timed_out: bool = False
    """Whether the run is over its timeout (it was asked to stop, and may not have noticed yet)."""
    _totals: dict[str, int | float] = field(default_factory=dict)
    _progress: dict[str, Any] = field(default_factory=dict)
    _stop: threading.Event = field(default_factory=threading.Event)

    @property
    def idempotency_key(self) -> str:
        """The same for every attempt of one slot: hand it to services that deduplicate."""
        return f"{self.job}:{self.scheduled_for.isoformat()}"

    @property
    def stop_requested(self) -> bool:
        """Whether the run was asked to stop (shutdown, cancel, replacement, timeout)."""
        return self._stop.is_set()

    def request_stop(self, reason: str = "cancelled") -> None:
        """Ask the task to stop at its next convenience; the first reason counts."""
        self.stop_reason = self.stop_reason or reason
        self._stop.set()

    def check_stop(self) -> None:
        """Raise RunStopped when the run was asked to stop."""
        if self.stop_requested:
            raise RunStopped

    def totals(self, **counts: int | float) -> None:
        """Set the run's named totals; `errors` above 0 counts as a failure for breaker and backoff.

        Numbers of any kind, a Decimal say, are kept as JSON has them. Raises InvalidOption for what is no finite
        number, and for negative `errors`.
        """
        numbers = {checked_text("the name of a total", name): checked_number(name, n) for name, n in counts.items()}
        if numbers.get("errors", 0) < 0:
            raise InvalidOption(f"errors is {counts['errors']}; it cannot be negative.")
        self._totals.update(numbers)

    @property
    def last_progress(self) -> dict[str, Any] | None:
        """What `progress` was told last, None before."""
        return self._progress or None

    @property
    def last_totals(self) -> dict[str, int | float]:
        """What `totals` was told so far."""
        return self._totals

    def progress(self, done: int, total: int | None = None, message: str = "") -> None:
        """Say how far the run is."""
        self._progress = {"done": done, "total": total, "message": message}


_current: ContextVar[RunContext | None] = ContextVar("scheduler_current_run", default=None)


def current_run() -> RunContext | None:
    """Return the run this code is part of, or None outside a run."""
    return _current.get()
