"""Attendance: this process as an instance for the runs that are brought to it, one row and one heartbeat for all."""

import logging
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from django.db import DatabaseError

from scheduler.clock import SYSTEM_CLOCK, Clock
from scheduler.context import LogLines, RunContext
from scheduler.engine.base import Claimed, Engine
from scheduler.engine.finish import Finished, Outcome, Settled, finish_runs
from scheduler.engine.release import release_runs
from scheduler.engine.rescue import close_as_lost
from scheduler.exceptions import Refused
from scheduler.executors import log_capture
from scheduler.executors.call import context_for
from scheduler.executors.inline import call_inline
from scheduler.executors.live_run import Living
from scheduler.models import RunLog
from scheduler.models.instance import FOR_AN_ATTEMPT
from scheduler.runtime import publish
from scheduler.runtime.parts import LAST_WRITES, Parts

logger = logging.getLogger("scheduler")

Line = Callable[[str], object]
Claim = Callable[[Engine, Clock], Claimed | None]
"""Claims the run for the instance; None where there is none to start."""


class Attendance(Parts):
    """A scheduler without a dispatcher: it sees through the runs that are brought to it, and looks for no others."""

    def __init__(self, started_by: str, log: Line = str) -> None:
        self._log = log
        self._entry = threading.Lock()
        self._wakes: list[Callable[[], object]] = []
        self._left: set[int] = set()
        """Runs that were closed although their calls go on; each holds a worker."""
        super().__init__(
            started_by,
            workers=1,
            settled=self._settled,
            freed=self._wake_all,
            context_for=lambda claimed: _told_context(claimed, log),
        )
        self._watch_over(SYSTEM_CLOCK)

    def carry_out(self, claim: Claim) -> Claimed | None:
        """Claim a run and call it in this thread, on the caller's connection; None where there is none."""
        self._join()
        log_capture.install()
        claimed = claim(self.engine, self.clock)
        if claimed is not None:
            outcome = call_inline(claimed, _told_context(claimed, self._log), self.clock)
            publish.settled(finish_runs(self.engine, [Finished(claimed.run, outcome)]))
        return claimed

    def begin(self, claim: Claim, *, places: int = 1) -> Claimed | None:
        """Be an instance with room for that many runs, claim one and start it; None where there is none to start."""
        with self._entry:
            self._join()
            if not self.watching.is_alive():
                self.start()
            self.pool.grow(places + len(self._left & self.pool.run_ids()))
        if not self.pool.capacity():
            raise RuntimeError("can't start new thread")
        claimed = claim(self.engine, self.clock)
        if claimed is None:
            return None
        if not self.member.may_claim():  # the answer came after the lease: others may have begun the run again by now
            publish.settled(release_runs(self.engine, [claimed]))
            return None
        self.pool.submit(claimed)
        return claimed

    def is_over(self, run_id: int) -> bool:
        """Whether a run has ended, and the ledger says so."""
        return run_id not in self.pool.run_ids() and run_id not in self.recorder.unwritten()

    def living(self, run_id: int) -> Living | None:
        """Return a run that goes on."""
        return next((one for one in self.pool.living() if one.claimed.run.pk == run_id), None)

    def ask_to_stop(self, run_id: int, reason: str) -> None:
        """Ask one run to stop."""
        self.pool.stop_runs([run_id], reason)

    def close(self, run: RunLog, outcome: Outcome) -> None:
        """Write that a run has ended although its call goes on; its token is void from then on."""
        self._left.add(run.pk)
        publish.settled(finish_runs(self.engine, [Finished(run, outcome)], in_doubt=True))

    def give_up(self, run_id: int, why: str) -> None:
        """Close a run as lost that does not stop, for another process to begin it again."""
        self._left.add(run_id)
        held = list(self.held().filter(pk=run_id))
        publish.settled(close_as_lost(self.engine, held, self.clock.now(), why, blameless=True))

    @contextmanager
    def heard_by(self, wake: Callable[[], object]) -> Iterator[None]:
        """Have `wake` called whenever a run has ended, or its end has been written."""
        self._wakes.append(wake)
        try:
            yield
        finally:
            self._wakes.remove(wake)

    def leave(self) -> None:
        """End the threads and leave the database; nothing is held afterwards."""
        self.release_locks()
        self.end_threads(self.clock.monotonic() + LAST_WRITES)
        try:
            self.member.leave()
        except DatabaseError as error:  # none of the run, whose end is in the ledger
            text = "The scheduler could not leave cleanly; others will rescue its runs"
            logger.error("%s: %s", text, error, extra={"action": "leave_failed"})

    def _join(self) -> None:
        """Become an instance if this is none; raises Refused with the reason where the scheduler would not start."""
        if self.member.joined:
            return
        self.member.join_for_one_run()
        if not self.member.joined:
            raise Refused(self.member.refusal)

    def _settled(self, settled: Settled) -> None:
        publish.settled(settled)
        self._wake_all()

    def _wake_all(self) -> None:
        for wake in list(self._wakes):
            wake()


class _Here:
    """The attendance of this process: there while an attempt goes on, or something keeps it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._one: Attendance | None = None
        self._users = 0

    def enter(self) -> tuple[Attendance, int]:
        """Return it, and how many use it now. Each use ends with `leave`."""
        with self._lock:
            if self._one is None:
                self._one = Attendance(FOR_AN_ATTEMPT)
            self._users += 1
            return self._one, self._users

    def leave(self) -> None:
        """End a use; after the last one this process is no instance any more."""
        with self._lock:
            self._users -= 1
            if self._users > 0:
                return
            one, self._one, self._users = self._one, None, 0
        if one is not None:
            one.leave()


_here = _Here()


@contextmanager
def attending() -> Iterator[tuple[Attendance, int]]:
    """Be an instance inside the block, the same one for all that attend at the same time; says how many those are."""
    here = _here
    try:
        yield here.enter()
    finally:
        here.leave()


class _Told(LogLines):
    """Lines of a log that are also passed on as they come."""

    __slots__ = ("_tell",)

    def __init__(self, limit: int, tell: Line) -> None:
        super().__init__(limit)
        self._tell = tell

    def append(self, line: str) -> None:
        super().append(line)
        with suppress(Exception):  # a terminal that is gone is no error of the run
            self._tell(line)


def _told_context(claimed: Claimed, log: Line) -> RunContext:
    context = context_for(claimed)
    if log is not str:
        context.log = _Told(context.log.limit, log)
    return context


def _start_over_in_child() -> None:
    """A forked child has neither the threads nor the row of its parent, and a lock of it may be held for ever."""
    global _here
    _here = _Here()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_start_over_in_child)
