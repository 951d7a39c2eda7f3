"""Watch: how a child hears that it is to stop and that its parent is gone, and what it prints when it crashes."""

import contextlib
import faulthandler
import os
import select
import signal
import sys

from scheduler.context import RunContext
from scheduler.executors.forked import spare_forks

LOOK_FOR_PARENT = 1.0
"""Seconds between two looks at who the parent is; its end is usually seen at once, on the lifeline."""


class StopWish:
    """The parent's wish that the run ends; it may come before there is a run."""

    def __init__(self) -> None:
        self._reason = ""
        self._context: RunContext | None = None

    def express(self, reason: str) -> None:
        """Ask the run to stop; `reason` is one of `RunContext.stop_reason`."""
        self._reason = reason
        self._tell()

    def address(self, context: RunContext) -> None:
        """Say which run is meant."""
        self._context = context
        self._tell()

    def _tell(self) -> None:
        # Two threads may get here at once, one from each side: telling twice does no harm.
        if self._context is not None and self._reason:
            self._context.timed_out = self._reason == "timeout"
            self._context.request_stop(self._reason)


def say_where_it_crashed() -> None:
    """Print the stacks of all threads before a crash kills, and on SIGQUIT (as a JVM does): a timeout asks for it."""
    faulthandler.enable(2)
    faulthandler.register(signal.SIGQUIT, 2)


def catch_sigterm() -> int:
    """Turn SIGTERM into a byte on a pipe: an Event cannot be set by a handler that may have interrupted its lock."""
    reading, writing = os.pipe()
    os.set_blocking(writing, False)

    def handle(*_: object) -> None:
        with contextlib.suppress(BlockingIOError):
            os.write(writing, b"!")

    signal.signal(signal.SIGTERM, handle)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())  # the mask of the parent's thread came along
    spare_forks({signal.SIGTERM: signal.SIG_DFL}, handle)
    return reading


def watch_parent(lifeline: int, sigterm: int, control: int, stop: StopWish) -> None:
    """Pass on the wish to stop; kill this process and its descendants when the parent is gone."""
    parent = os.getppid()
    watched = [lifeline, sigterm, control]
    while True:
        readable, _, _ = select.select(watched, [], [], LOOK_FOR_PARENT)
        # A fork of the parent may hold the pipe open; then the new parent of this process tells.
        if lifeline in readable or os.getppid() != parent:
            os.killpg(os.getpgrp(), signal.SIGKILL)
        if readable:
            # The parent sends its reason before the signal; without one, the signal came from elsewhere.
            told, _, _ = select.select([control], [], [], 0)
            stop.express((os.read(control, 4096).decode().strip() if told else "") or "cancelled")
            watched = [lifeline]


def die_with_parent(lifeline: int) -> None:
    """Have the kernel kill the process group when the parent's end of the pipe closes, without any help of ours.

    The watching thread cannot do it while C code holds the interpreter (a regular expression that never ends, say).
    """
    if sys.platform == "linux":
        import fcntl

        with contextlib.suppress(OSError):
            fcntl.fcntl(lifeline, fcntl.F_SETOWN, -os.getpgrp())
            fcntl.fcntl(lifeline, fcntl.F_SETSIG, signal.SIGKILL)
            fcntl.fcntl(lifeline, fcntl.F_SETFL, fcntl.fcntl(lifeline, fcntl.F_GETFL) | os.O_ASYNC)
