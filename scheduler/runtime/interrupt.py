"""Stop request: the wish of a person or the system that a command ends, by Ctrl-C, SIGTERM or SIGHUP."""

import signal
import threading
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any, Self

from scheduler.clock import SYSTEM_CLOCK
from scheduler.executors.forked import forget_handler, spare_forks

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, *([signal.SIGHUP] if hasattr(signal, "SIGHUP") else []))
"""SIGHUP comes when the terminal closes."""
LOOK_EVERY = 1.0
"""Seconds until we see a signal that another thread has caught: one that came while we were frozen may go to any."""


class StopRequest:
    """Notes a signal where it finds us: an exception out of the middle of a wait could break its lock.

    Signals are heard in a `with` block, in the main thread only; a SIGHUP that `nohup` ignores stays so. The second
    signal is left to the system, which ends the process at once.
    """

    def __init__(self) -> None:
        self.came: signal.Signals | None = None
        """The signal that came; None as long as none did."""
        self._changed = threading.Condition()  # its lock may be taken again by a handler that interrupts its holder
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> "StopRequest":
        if threading.current_thread() is threading.main_thread():
            self._before = {number: signal.signal(number, self._hear) for number in filter(_is_ours, STOP_SIGNALS)}
            spare_forks(self._before, self._hear)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler or signal.SIG_DFL)
        forget_handler(self._hear)

    def wait(self, over: Callable[[], bool] = lambda: False) -> None:
        """Return when a signal has come, or there is nothing more to wait for; `wake` makes it look."""
        with self._changed:
            while self.came is None and not over():
                SYSTEM_CLOCK.wait(self._changed, LOOK_EVERY)

    def wake(self) -> None:
        """Let the wait look whether it is over."""
        with self._changed:
            self._changed.notify_all()

    def note(self, number: signal.Signals) -> None:
        """Ask for the stop, as the signal does."""
        self.came = number
        self.wake()

    def _hear(self, number: int, _: object) -> None:
        for each in self._before:
            signal.signal(each, signal.SIG_DFL)
        self.note(signal.Signals(number))


def _is_ours(number: signal.Signals) -> bool:
    return number.name != "SIGHUP" or signal.getsignal(number) is not signal.SIG_IGN


class HearsSigterm:
    """Hears SIGTERM in a `with` block, in the main thread only; then what heard it before hears it again."""

    def __init__(self, *, hears: bool = True) -> None:
        self._before: Any = None
        self._hears = hears and threading.current_thread() is threading.main_thread()

    def __enter__(self) -> Self:
        if self._hears:
            self._before = signal.signal(signal.SIGTERM, self._hear)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._hears:
            signal.signal(signal.SIGTERM, self._before or signal.SIG_DFL)

    def _hear(self, number: int, frame: FrameType | None) -> None:
        raise NotImplementedError
