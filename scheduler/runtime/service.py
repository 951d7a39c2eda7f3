"""A service: a small step, repeated by a dull loop in a thread of its own that survives every error."""

import logging
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import cast

from django.db import Error as DatabaseError
from django.db import connections

from scheduler.clock import Clock
from scheduler.executors.connections import drop_connections, give_back_pooled
from scheduler.executors.forked import only_here
from scheduler.safetext import told

logger = logging.getLogger("scheduler")

LONGEST_WAIT = 60.0
RETRY_SECONDS = (0.0, 0.1, 0.5, 1.0, 2.0, 5.0)
"""Waits after errors in a row; the first retry is immediate, since an idle connection may just have been dropped."""
FAILED_ROUNDS = 4
"""A service that has failed so often in a row, which takes it some two seconds, is told of as a problem."""
LOG_EVERY = 5.0
JOIN_LOOK = 0.05


class _Thread(threading.Thread):
    replaced = False
    at_its_end = False


def was_replaced() -> bool:
    """Whether the calling thread is one that its service has left behind: another one does its work by now.

    A step that comes back from a hang asks this before it hands anything over.
    """
    return getattr(threading.current_thread(), "replaced", False)


class Service:
    """Runs `step` again and again; each step returns the seconds to wait, `wake()` ends a wait early."""

    def __init__(self, name: str, step: Callable[[], float], clock: Clock, *, log_every: float = LOG_EVERY) -> None:
        self._log_every = log_every
        self.name = name
        self.errors = 0
        self.last_error = ""
        self.beat = clock.monotonic()
        self._step = step
        self._clock = clock
        self._changed = threading.Condition()
        self._woken = False
        self._stopping = False
        self._thread: _Thread | None = None
        self._left_behind: list[_Thread] = []
        self.errors_in_a_row = 0
        """How many steps have failed since one last succeeded."""
        self._logged_at = float("-inf")

    def start(self) -> None:
        """Start the thread; one that lives from before is left behind, and ends when it comes back from its step."""
        with self._changed:
            if self._thread is not None and self._thread.is_alive():
                self._thread.replaced = True
                self._left_behind = [*filter(threading.Thread.is_alive, self._left_behind), self._thread]
            self.beat = self._clock.monotonic()
            self._thread = _Thread(target=self._run, name=f"scheduler-{self.name}", daemon=True)
            self._changed.notify_all()
            self._thread.start()

    def left_behind(self) -> int:
        """Return how many threads hang that have been replaced."""
        return sum(thread.is_alive() for thread in self._left_behind)

    def wake(self) -> None:
        """Run the step now."""
        with self._changed:
            self._woken = True
            self._changed.notify_all()

    def sign_of_life(self) -> None:
        """Say in the middle of a long step that it goes on."""
        if not was_replaced():
            self.beat = self._clock.monotonic()

    def stop(self) -> None:
        """Let the thread end after its current step."""
        with self._changed:
            self._stopping = True
            self._changed.notify_all()

    def join(self, seconds: float) -> bool:
        """Wait for the thread to end; False when it did not."""
        thread, deadline = self._thread, self._clock.monotonic() + seconds
        if thread is None or thread.ident is None or thread is threading.current_thread():
            return True
        with self._changed:
            while thread.is_alive() and not thread.at_its_end:
                left = deadline - self._clock.monotonic()
                if left <= 0:
                    return False
                self._clock.wait(self._changed, min(left, JOIN_LOOK))
        thread.join()  # a moment, and none at all if it had died
        return True

    def is_alive(self) -> bool:
        """Return whether the thread lives."""
        return self._thread is not None and self._thread.is_alive()

    def trouble(self) -> str:
        """Return what goes wrong round after round, in one line; empty when nothing does."""
        if self.errors_in_a_row < FAILED_ROUNDS:
            return ""
        return f"{self.name}: {' '.join(self.last_error.split())}"

    def age(self) -> float:
        """Return the seconds since the last completed step or announced wait."""
        return self._clock.monotonic() - self.beat

    def _run(self) -> None:
        thread = cast(_Thread, threading.current_thread())
        try:
            while self._goes_on():
                seconds = self._guarded_step()
                if seconds > 0:
                    give_back_pooled()
                self._wait(seconds)
        finally:
            connections.close_all()
            with self._changed:
                thread.at_its_end = True
                self._changed.notify_all()

    def _goes_on(self) -> bool:
        return not (self._stopping or was_replaced())

    def _guarded_step(self) -> float:
        try:
            with only_here():
                wait = self._step()
        except Exception as error:
            return self._after_error(error)
        self.errors_in_a_row = 0
        return wait

    def _after_error(self, error: Exception) -> float:
        self.errors += 1
        self.last_error = f"{type(error).__name__}: {told(error)}"
        if isinstance(error, DatabaseError):
            drop_connections()
        wait = RETRY_SECONDS[min(self.errors_in_a_row, len(RETRY_SECONDS) - 1)]
        self.errors_in_a_row += 1
        now = self._clock.monotonic()
        if self.errors_in_a_row > 1 and now - self._logged_at >= self._log_every:
            self._logged_at = now
            with suppress(Exception):  # a logging handler that fails must not end the thread
                self._log(error)
        return wait

    def _log(self, error: Exception) -> None:
        logger.error(
            "%s failed and goes on (%d in a row): %s",
            self.name.capitalize(),
            self.errors_in_a_row,
            self.last_error,
            extra={"action": "service_error", "service": self.name},
            exc_info=not isinstance(error, DatabaseError | ConnectionError),  # where in a client says nothing more
        )

    def _wait(self, seconds: float) -> None:
        """Wait for the next step. A thread that has been replaced leaves wake-up and beat to its successor."""
        with self._changed:
            if not self._goes_on():
                return
            self.beat = self._clock.monotonic()
            deadline = self.beat + min(seconds, LONGEST_WAIT)
            while self._goes_on() and not self._woken:
                left = deadline - self._clock.monotonic()
                if left <= 0:
                    break
                self._clock.wait(self._changed, left)
            if self._goes_on():
                self._woken = False
                self.beat = self._clock.monotonic()
