"""What a running task can know and say about its run."""

import json
import logging
import sys
import threading
from collections import deque
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from scheduler.arguments import checked_number, checked_text, json_of
from scheduler.exceptions import InvalidOption, SchedulerError
from scheduler.safetext import counted, shown
from scheduler.schedules.base import NO_TIME
from scheduler.schedules.duration import LONGEST

LARGEST = 64 * 1024
"""Characters of JSON that are kept of a state, of totals, of a progress."""
LOGGER = logging.getLogger("scheduler.task")


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
        head = f"… {counted(self._dropped, 'earlier line')} dropped …\n" if self._dropped else ""
        return head + "\n".join(self._lines)


class RunStopped(SchedulerError):
    """The run was asked to stop and the task agreed (`context.check_stop()`)."""


class Postpone(SchedulerError):
    """The task asks to be started again later; this is no failure, and the slot stays the same."""

    def __init__(self, message: str = "", *, seconds: float = 0, minutes: float = 0, hours: float = 0) -> None:
        if not isinstance(message, str):
            raise InvalidOption(f"the reason of Postpone is {shown(message)}; it must be a string.")
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
    last_result: str = ""
    """How the run that ended last ended: `success`, `errors` (a success with errors), else its status; empty before."""
    state: dict[str, Any] = field(default_factory=dict)
    """Kept between the runs of a job (JSON, at most 64 KB and 30 levels deep), saved whatever the outcome.

    Of a run that has called `save` and does not succeed, what was saved last is kept.
    """
    logger: logging.Logger = LOGGER
    log: LogLines = field(default_factory=lambda: LogLines(64_000), repr=False)
    stop_reason: str = ""
    """Why the run was asked to stop: shutdown, cancelled, replaced, timeout or lease; empty when it was not."""
    timed_out: bool = False
    """Whether the run is over its timeout (it was asked to stop, and may not have noticed yet)."""
    _totals: dict[str, int | float] = field(default_factory=dict)
    _progress: dict[str, Any] = field(default_factory=dict)
    _kwargs: dict[str, Any] | None = None
    """The arguments of the call, where they were rendered ahead of it."""
    _row: Any = None
    """The row of a task that was enqueued; None for runs of jobs."""
    _return_value: Any = None
    """What a task of Django Tasks returned, as JSON has it."""
    _stop: threading.Event = field(default_factory=threading.Event)
    _saver: "Saver | None" = field(default=None, repr=False)
    """Stores a state; False when the run is not ours any more. None outside the scheduler, where nothing is stored."""
    _saved: str = field(default="", repr=False)
    _after_save: Callable[[], None] | None = field(default=None, repr=False)
    """Called behind each save, where a test wants to be."""

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

    def save(self) -> None:
        """Make a checkpoint: store `state` now, so that the next attempt goes on with it if this one is killed.

        Inside a transaction on the database of the jobs it is part of that: it is kept if, and only if, the transaction
        commits. Raises InvalidOption for a state that cannot be kept, or when called on an event loop (`asave` is for
        that), and RunStopped when the run is not this process's any more: it was lost or abandoned, and another attempt
        may be going on. Nothing is stored then, and what was saved before stays. An error of the database is raised.
        """
        if _is_on_a_loop():
            raise InvalidOption("context.save() would hold up the event loop; write: await context.asave()")
        text = _state_as_json(self.state)
        if self._saver is not None and not self._saver(self, json.loads(text)):
            self.request_stop("lease")
            raise RunStopped("the run is not this process's any more: its state is not saved")
        self._saved = text
        if self._after_save is not None:
            self._after_save()

    async def asave(self) -> None:
        """As `save`, for `async def` tasks."""
        from asgiref.sync import sync_to_async  # who has no async task needs none of it

        await sync_to_async(self.save)()

    @property
    def saved_state(self) -> dict[str, Any] | None:
        """A copy of the state as this run saved it last, None before it did."""
        saved: dict[str, Any] | None = json.loads(self._saved) if self._saved else None
        return saved

    def progress(self, done: int, total: int | None = None, message: str = "") -> None:
        """Say how far the run is."""
        self._progress = {"done": done, "total": total, "message": message}


Saver = Callable[[RunContext, dict[str, Any]], bool]


def _is_on_a_loop() -> bool:
    """Whether this code runs on an event loop; asyncio is not loaded for the question."""
    asyncio: Any = sys.modules.get("asyncio")
    return asyncio is not None and asyncio._get_running_loop() is not None


def _state_as_json(state: Any) -> str:
    if not isinstance(state, dict):
        raise InvalidOption(f"context.save(): the state is {shown(state)}; it must be a dict.")
    try:
        text = json_of(state)
        if len(text) > LARGEST:
            raise ValueError(f"it has {len(text)} characters of JSON; at most {LARGEST} are kept")
    except (TypeError, ValueError, RecursionError) as problem:
        raise InvalidOption(f"context.save(): the state cannot be kept: {problem}.") from None
    return text


_current: ContextVar[RunContext | None] = ContextVar("scheduler_current_run", default=None)


def current_run() -> RunContext | None:
    """Return the run this code is part of, or None outside a run."""
    return _current.get()
