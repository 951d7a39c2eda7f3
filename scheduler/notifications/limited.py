"""Limited: calls what may hang (a mail server, a name server, a function of the project) for a bounded time."""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from scheduler.clock import Clock
from scheduler.notifications.channels.base import SendFailed
from scheduler.safetext import told
from scheduler.schedules.duration import length_words

SECONDS = 30.0
AT_THE_END = 1.0
"""Seconds that a call may still take when the process stops."""
LOOK_EVERY = 0.2
LONGEST_LATE = 600.0
"""Seconds that a late call is waited for before others may try: it may hang for ever."""


class Stopped(Exception):
    """The process stops, and whether the message was sent is not known."""


class NoAnswer(SendFailed):
    """A call takes too long; what becomes of it is known later."""


@dataclass(slots=True)
class _Call:
    """A call that goes on; `note` is what its caller wants back should it succeed after its time."""

    thread: threading.Thread
    note: object
    raised: list[BaseException]
    late_since: float


class Limited:
    """Calls in threads of their own, one for each name: while one hangs, it is not called again."""

    def __init__(self, clock: Clock, stopping: Callable[[], bool] = lambda: False) -> None:
        self._clock = clock
        self._stopping = stopping
        self._late: dict[str, _Call] = {}
        self._ended = threading.Condition()

    def call(self, name: str, function: Callable[[], None], seconds: float = SECONDS, *, note: object = None) -> None:
        """Call it; raises SendFailed when it raises, NoAnswer when it takes longer, Stopped when the process stops."""
        late = self._late.get(name)
        if late is not None and (late.note is not None or late.thread.is_alive()):
            raise NoAnswer("The call before has not returned.")
        self._late.pop(name, None)
        raised: list[BaseException] = []
        thread = threading.Thread(
            target=self._run, args=(function, raised), name=f"scheduler-notify-{name[:40]}", daemon=True
        )
        thread.start()
        self._wait(thread, seconds)
        if thread.is_alive():
            self._late[name] = _Call(thread, note, raised, self._clock.monotonic())
            raise NoAnswer(f"No answer within {length_words(seconds)}.")
        if raised:
            raise _failure(raised[0]) from raised[0]

    def goes_on(self, name: str) -> bool:
        """Return whether a late call whose end is to be noted still goes on, and has not for `LONGEST_LATE`."""
        late = self._late.get(name)
        if late is None or late.note is None or not late.thread.is_alive():
            return False
        return self._clock.monotonic() - late.late_since < LONGEST_LATE

    def succeeded_late(self, name: str) -> Any:
        """Return the note of a call that succeeded after its time, once; None where none did."""
        if not self._has_ended(name):
            return None
        late = self._late.pop(name)
        return None if late.raised else late.note

    def _has_ended(self, name: str) -> bool:
        return name in self._late and not self._late[name].thread.is_alive()

    def _run(self, function: Callable[[], None], raised: list[BaseException]) -> None:
        try:
            function()
        except BaseException as error:
            raised.append(error)
        finally:
            with self._ended:
                self._ended.notify_all()

    def _wait(self, thread: threading.Thread, seconds: float) -> None:
        until = self._clock.monotonic() + seconds
        stops_at: float | None = None
        with self._ended:
            while thread.is_alive() and (left := until - self._clock.monotonic()) > 0:
                if self._stopping():
                    stops_at = self._clock.monotonic() + AT_THE_END if stops_at is None else stops_at
                    if self._clock.monotonic() >= stops_at:
                        raise Stopped
                self._clock.wait(self._ended, min(left, LOOK_EVERY))


def _failure(error: BaseException) -> SendFailed:
    """Whatever ended the call, a SystemExit too, ends nothing else."""
    return error if isinstance(error, SendFailed) else SendFailed(f"{type(error).__name__}: {told(error)}")
