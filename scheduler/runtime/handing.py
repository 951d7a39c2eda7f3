"""Handing: sends promised attempts to where an executor hands them over, in a thread of its own for each executor."""

import threading
from collections.abc import Callable

from scheduler.executors.base import Handover, load
from scheduler.models import RunLog
from scheduler.policy.executor import Executor
from scheduler.runtime.service import LONGEST_WAIT
from scheduler.safetext import told

MOST_WAITING = 1000
"""Attempts that may wait to be sent; while so many do, no further one is handed over."""


class Handing:
    """The step of the thread. What it raises is tried again by its service, which waits, and says so."""

    def __init__(self, executor: Executor, wake: Callable[[], None]) -> None:
        self._executor = executor
        self._handover: Handover | None = None
        self._wake = wake
        self._lock = threading.Lock()
        self._waiting: dict[int, RunLog] = {}

    def places(self) -> int:
        """Return how many attempts may be handed over now."""
        return max(0, MOST_WAITING - len(self._waiting))

    def put(self, run: RunLog) -> None:
        """Take an attempt, whose hand-over has been committed."""
        with self._lock:
            self._waiting[run.pk] = run
        self._wake()

    def withdraw(self) -> list[int]:
        """Take back what has not been sent."""
        with self._lock:
            unsent, self._waiting = list(self._waiting), {}
            return unsent

    def step(self) -> float:
        """Send one attempt; return the seconds until the next one. One that cannot be sent lets the others go first."""
        with self._lock:
            run = next(iter(self._waiting.values()), None)
            if run is None:
                return LONGEST_WAIT
            self._waiting[run.pk] = self._waiting.pop(run.pk)
        self._send(run)
        with self._lock:
            if self._waiting.get(run.pk) is run:
                del self._waiting[run.pk]
        return 0.0

    def _send(self, run: RunLog) -> None:
        """Send it. What would end the thread, such as sys.exit() in the client of a broker, is an error like others."""
        try:
            if self._handover is None:
                self._handover = load(self._executor)
            self._handover.send(run)
        except (Exception, KeyboardInterrupt):
            raise
        except BaseException as error:
            raise RuntimeError(f"{type(error).__name__}: {told(error)}") from error
