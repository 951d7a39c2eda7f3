"""Process: one run in an interpreter of its own, so that a timeout really kills and a crash is only a failed run."""

import os
import selectors
import signal
import threading
from contextlib import closing, suppress
from datetime import timedelta
from typing import Any

from scheduler.clock import Clock
from scheduler.context import RunContext
from scheduler.engine.base import Claimed
from scheduler.engine.outcome import Outcome
from scheduler.engine.plan_basis import policy_of
from scheduler.executors.base import Ended
from scheduler.executors.call import from_to, stopped
from scheduler.executors.live_run import Living
from scheduler.executors.process import wire
from scheduler.executors.process.spawn import Spawned, request_for, spawn
from scheduler.executors.sanitize import error_text, keep_tail, progress_of, totals_of
from scheduler.models import Status
from scheduler.schedules.duration import length_words

GRACE = timedelta(seconds=5)
"""How long a child may go on after it was asked to stop, or after its task has ended."""
TICK = 0.1
"""Seconds between two looks at the stop flag, at the time and at whether the child lives."""
LAST_TICK = 0.01
CHUNK = 65536
LAST_CHUNKS = 64
LONGEST_OUTPUT_LINE = 8192
BUSY_SHARE = 4

LAST_WORDS = 4000
HINTS = {"SIGKILL": " (perhaps out of memory)", "SIGXCPU": " (its limit of CPU time)"}


class InProcess:
    """Calls each task in a process of its own, which the worker's thread follows to its end."""

    keeps_time = True

    def call(self, living: Living, clock: Clock, ended: Ended) -> Outcome:
        """See `Caller`."""
        timeout = policy_of(living.claimed.job).timeout
        return run_in_process(living.claimed, living.context, clock, timeout=timeout)


def run_in_process(
    claimed: Claimed,
    context: RunContext,
    clock: Clock,
    *,
    timeout: timedelta | None,
    grace: timedelta = GRACE,
) -> Outcome:
    """Run a task in a process of its own and wait until that has ended. Never raises.

    `timeout` counts from the start of the process. A child that is over its time, or whose `context` was asked to stop,
    gets SIGTERM, which sets the stop flag of its own context, and is killed `grace` later. Whatever happens, its
    descendants are killed with it. `context` shows log, totals and progress while the task runs.
    """
    started_at = max(clock.now(), claimed.start_at)
    try:
        run = _Run(context, clock, timeout, grace)
        verdict = run.verdict() if context.stop_requested else run.carry_out(claimed)
    except BaseException as error:
        verdict = {"status": Status.FAILED, "error": error_text(error, context.log.limit)}
    # What the parent heard on the way stands for what a killed child could not say at the end.
    started_at, finished_at = from_to(started_at, clock)
    heard = {"totals": totals_of(context), "progress": progress_of(context)}
    return Outcome(
        **{**heard, **verdict},
        started_at=started_at,
        finished_at=finished_at,
        log=keep_tail(context.log.text(), context.log.limit),
    )


class _Run:
    """A run in its process, seen from the parent's worker thread, which only waits for it."""

    def __init__(self, context: RunContext, clock: Clock, timeout: timedelta | None, grace: timedelta) -> None:
        self._context = context
        self._clock = clock
        self._timeout = timeout
        self._grace = grace
        self._deadline = float("inf")
        self._kill_at = float("inf")
        self._killed = self._asked = self._began = False
        self._told: dict[str, Any] | None = None
        self._code: int | None = None
        self._messages = wire.Lines(40 * context.log.limit + 2 * 1024 * 1024)
        self._output = wire.Lines(LONGEST_OUTPUT_LINE)
        self._pause = threading.Condition()

    def carry_out(self, claimed: Claimed) -> dict[str, Any]:
        """Start the child, follow it to its end, and return how the run ended."""
        request = request_for(claimed, self._context)
        with closing(spawn()) as child, selectors.DefaultSelector() as self._selector:
            try:
                self._follow(child, request)
            finally:
                _kill_group(child)
                self._code = child.process.wait()
            self._read_the_rest(child)
        if self._told is not None and self._code:
            self._context.log.append(f"[The process of the run {how_it_ended(self._code)} after the task had ended.]")
        return self.verdict()

    def _follow(self, child: Spawned, request: bytes) -> None:
        if self._timeout is not None:
            self._deadline = self._clock.monotonic() + self._timeout.total_seconds()
        self._selector.register(child.control, selectors.EVENT_WRITE, memoryview(request))
        self._selector.register(child.events, selectors.EVENT_READ, self._heard)
        self._selector.register(child.output, selectors.EVENT_READ, self._printed)
        while not _has_ended(child):
            self._exchange(child)
            self._keep_time(child)

    def _exchange(self, child: Spawned) -> None:
        """Wait for the pipes, a moment only, and move what they have."""
        # This is waiting for I/O, which no condition can do. It is bounded by a tick, because neither the stop flag nor
        # the time wakes it; how much time has passed is always asked of the clock.
        listening = child.events in self._selector.get_map()
        ready = self._selector.select(TICK if listening else LAST_TICK)
        began = self._clock.monotonic()
        for key, _ in ready:
            if key.fd == child.control:
                self._write(key)
            else:
                self._read(key.fd, key.data)
        # A flood of output slows the child down, not the other threads of this process: reading takes a fifth of the
        # time at most.
        busy = self._clock.monotonic() - began
        if ready:
            with self._pause:
                self._clock.wait(self._pause, min(busy * BUSY_SHARE, TICK))

    def _write(self, key: selectors.SelectorKey) -> None:
        try:
            left = key.data[os.write(key.fd, key.data) :]
        except BlockingIOError:
            return
        except OSError:  # the child ended without reading it: its exit says why
            left = b""
        if left:
            self._selector.modify(key.fd, selectors.EVENT_WRITE, left)
        else:
            self._selector.unregister(key.fd)

    def _read(self, fd: int, take: Any) -> bool:
        try:
            data = os.read(fd, CHUNK)
        except BlockingIOError:
            return False
        if data:
            take(data)
        else:
            self._selector.unregister(fd)
        return bool(data)

    def _read_the_rest(self, child: Spawned) -> None:
        """Read what the pipes still hold; a descendant that left the process group cannot keep us reading."""
        for fd, take in ((child.output, self._printed), (child.events, self._heard)):
            for _ in range(LAST_CHUNKS):
                if fd not in self._selector.get_map() or not self._read(fd, take):
                    break
        for line in self._output.end():
            self._log(line)

    def _heard(self, data: bytes) -> None:
        for line in self._messages.feed(data):
            kind, values = wire.decode(line) or ("", {})
            match kind:
                case wire.LOG:
                    self._context.log.append(values["line"])
                case wire.TOTALS:
                    self._context.totals(**values)
                case wire.PROGRESS:
                    self._context.progress(**values)
                case wire.BEGAN:
                    self._began = True
                case wire.OUTCOME:
                    self._told = values

    def _printed(self, data: bytes) -> None:
        for line in self._output.feed(data):
            self._log(line)

    def _log(self, line: bytes) -> None:
        self._context.log.append(line.decode("utf-8", "replace"))

    def _keep_time(self, child: Spawned) -> None:
        now = self._clock.monotonic()
        latest = now + self._grace.total_seconds()
        if self._told is not None:  # the task is over; its process may not linger
            self._kill_at = min(self._kill_at, latest)
        elif not self._asked:
            if now >= self._deadline:
                self._context.timed_out = True
                self._context.request_stop("timeout")
            if self._context.stop_requested:
                self._asked, self._kill_at = True, latest
                self._ask_to_stop(child)
        if now >= self._kill_at:
            self._killed = True
            _kill_group(child)

    def _ask_to_stop(self, child: Spawned) -> None:
        with suppress(OSError):  # it may have ended just now, or not even have read its request
            if child.control not in self._selector.get_map():
                os.write(child.control, self._context.stop_reason.encode() + b"\n")
        with suppress(ProcessLookupError):
            if self._context.timed_out and self._began:
                os.kill(child.process.pid, signal.SIGQUIT)  # prints where it hangs, into the log of the run
            os.kill(child.process.pid, signal.SIGTERM)

    def verdict(self) -> dict[str, Any]:
        """Say how the run ended, as columns of its outcome."""
        over_time = self._context.timed_out and (self._asked or self._told is None)
        if self._told is not None:
            return _timed_out(self._told) if over_time else self._told
        if over_time:
            return {"status": Status.TIMED_OUT, "error": self._timeout_text()}
        killed = self._code is not None and -self._code in (signal.SIGTERM, signal.SIGKILL)
        if self._context.stop_requested and (killed or not self._began):
            return _stopped_values(self._context, self._clock)
        return {"status": Status.FAILED, "error": self._crash_text()}

    def _timeout_text(self) -> str:
        limit = length_words(self._timeout) if self._timeout is not None else "its time"
        text = f"Timed out: it did not end within {limit}"
        if self._killed:
            text += f" and was killed, with all it had started, {length_words(self._grace)} after it was asked to stop"
        return f"{text}." if self._began else f"{text}. It had not begun: its process was still loading the project."

    def _crash_text(self) -> str:
        how = how_it_ended(self._code or 0)
        if self._began:
            return f"The process of the run {how} before the task had ended."
        last_words = keep_tail(self._context.log.text(), LAST_WORDS)
        return f"The process of the run {how} before the task had begun.\n{last_words}".rstrip()


def how_it_ended(code: int) -> str:
    """Put an exit code of `subprocess` in words: negative ones are signals."""
    if code >= 0:
        return f"ended with exit code {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    return f"was killed by {name}{HINTS.get(name, '')}"


def _stopped_values(context: RunContext, clock: Clock) -> dict[str, Any]:
    """How a run counts that ended because it was asked to: by the same rule as in a thread."""
    outcome = stopped(context, clock.now(), clock)
    return {name: getattr(outcome, name) for name in ("status", "reason", "error", "blameless")}


def _timed_out(told: dict[str, Any]) -> dict[str, Any]:
    """What the child said when it was over its time; a task that postpones itself then is postponed, as in a thread."""
    if told["status"] in (Status.TIMED_OUT, Status.POSTPONED):
        return told
    error = (
        f"Timed out; it then ended with:\n{told['error']}" if told.get("error") else "Timed out just before its end."
    )
    return {**told, "status": Status.TIMED_OUT, "error": error, "reason": ""}


def _has_ended(child: Spawned) -> bool:
    """Whether the child has ended. It is not reaped here, so that its number, the name of its group, stays its own."""
    if not hasattr(os, "waitid"):
        return child.process.poll() is not None
    try:
        return os.waitid(os.P_PID, child.process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:  # this process ignores SIGCHLD, or someone reaped the child
        return True


def _kill_group(child: Spawned) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(child.process.pid, signal.SIGKILL)
