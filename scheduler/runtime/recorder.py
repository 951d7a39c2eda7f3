"""Recorder: writes the ends of runs in batches, and never loses one to a database that is away."""

import logging
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime

from django.db import InterfaceError, OperationalError

from scheduler.engine.base import Claimed, Engine
from scheduler.engine.db.transactions import is_of_row, may_be_of_one_row
from scheduler.engine.finish import Finished, Outcome, Settled, finish_runs
from scheduler.executors.call import CLOCK_WAS_SET
from scheduler.runtime.service import LONGEST_WAIT

logger = logging.getLogger("scheduler")

LARGEST_BATCH = 500
GATHER_SECONDS = 0.01
"""Rest between two batches while the pool is pressed: one transaction for every end would cost more than the runs."""


def _not_after(end: Finished, now: datetime) -> Finished:
    started_at = min(end.outcome.started_at, now)
    return replace(end, outcome=replace(end.outcome, started_at=started_at, finished_at=now))


def _is_away(error: Exception) -> bool:
    return isinstance(error, OperationalError | InterfaceError) and not may_be_of_one_row(error)


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """Ends that are being written. `in_doubt`: an earlier try may have been committed although it failed."""

    ends: list[Finished]
    in_doubt: bool


class Recorder:
    """Collects outcomes and writes them: as many as came while the last batch was being written, at once."""

    def __init__(
        self,
        engine: Engine,
        settled: Callable[[Settled], object],
        now: Callable[[], datetime] | None = None,
        *,
        is_pressed: Callable[[], bool] = lambda: False,
        wake: Callable[[], None] = lambda: None,
    ) -> None:
        self._engine = engine
        self._now = now
        self._settled = settled
        self._is_pressed, self._wake = is_pressed, wake
        self._lock = threading.Lock()
        self._ends: deque[Finished] = deque()
        self._tried: deque[Finished] = deque()
        """Ends whose write has failed, or has had no answer."""
        self._in_flight: list[Batch] = []
        """One batch; one more for each thread that hangs with it in the database and has been replaced."""
        self.gathers = False
        """Whether a batch was written just now, so that the next look comes by itself."""

    def put(self, claimed: Claimed, outcome: Outcome) -> None:
        """Take the end of a run; without the lock, at which workers would wait for each other."""
        self._ends.append(Finished(claimed.run, outcome))
        if not (self.gathers and self._is_pressed()):
            self._wake()

    def step(self) -> float:
        """Write a batch; return the seconds until the next look. An end wakes it earlier, unless more follow."""
        return GATHER_SECONDS if self.write() else LONGEST_WAIT

    def pending(self) -> int:
        """Return how many ends are not written yet."""
        with self._lock:
            return len(self._all())

    def unwritten(self) -> set[int]:
        """Return the ids of the runs whose ends are not written yet."""
        with self._lock:
            return {end.run.pk for end in self._all()}

    def write(self) -> int:
        """Write what there is, at most one batch; returns how many. What an error leaves is kept for the next try."""
        batch = self._next_batch()
        unwritten, settled = list(batch.ends), Settled()
        if not unwritten:
            return 0
        try:
            self._write(unwritten, settled, in_doubt=batch.in_doubt)
        finally:
            if self._is_still_ours(batch, unwritten) and len(unwritten) < len(batch.ends):
                self._settled(settled)
        return len(batch.ends)

    def write_all(self) -> None:
        """Write everything, at the end of the process, without waiting for threads that hang.

        What they are writing is taken back and written once more: what has been written by then is seen, and told once.
        """
        with self._lock:
            for batch in self._in_flight:
                self._tried.extend(batch.ends)
            self._in_flight.clear()
        while self.write():
            pass

    def _all(self) -> list[Finished]:
        return [*(end for batch in self._in_flight for end in batch.ends), *self._tried, *self._ends.copy()]

    def _next_batch(self) -> Batch:
        with self._lock:
            self.gathers = False  # before the look: an end that comes after it wakes us
            places = LARGEST_BATCH // 2 if self._ends else LARGEST_BATCH  # many refused ends keep no new one out
            again = [self._tried.popleft() for _ in range(min(places, len(self._tried)))]
            new = [self._ends.popleft() for _ in range(min(LARGEST_BATCH - len(again), len(self._ends)))]
            batch = Batch(self._in_time([*again, *new]), in_doubt=bool(again))
            if batch.ends:
                self._in_flight.append(batch)
                self.gathers = True
            return batch

    def _is_still_ours(self, batch: Batch, unwritten: list[Finished]) -> bool:
        """Note that a batch is not in flight any more; False when it was taken over, and others write and tell it."""
        with self._lock:
            if batch not in self._in_flight:
                return False
            self._in_flight.remove(batch)
            self._tried.extend(unwritten)
            return True

    def _in_time(self, ends: list[Finished]) -> list[Finished]:
        """Move ends that lie in the future to now: the clock was set back while they waited for the database."""
        if self._now is None:
            return ends
        now = self._now()
        return [_not_after(end, now) if end.outcome.finished_at - now > CLOCK_WAS_SET else end for end in ends]

    def _write(self, unwritten: list[Finished], settled: Settled, *, in_doubt: bool) -> None:
        """Take out what has been written, and tell `settled` of it."""
        try:
            settled += finish_runs(self._engine, unwritten, in_doubt=in_doubt)
            unwritten.clear()
        except Exception as error:
            if _is_away(error):
                raise
            self._write_each(unwritten, settled)

    def _write_each(self, unwritten: list[Finished], settled: Settled) -> None:
        """One of them cannot be written, and the others must not wait for it."""
        problem = None
        for end in list(unwritten):
            try:
                settled += self._write_one(end)
                unwritten.remove(end)
            except Exception as error:
                if _is_away(error):
                    raise
                problem = error
        if problem is not None:
            raise problem

    def _write_one(self, end: Finished) -> Settled:
        """One end of the batch cannot be stored: write it without its texts rather than lose how the run ended."""
        try:
            return finish_runs(self._engine, [end], in_doubt=True)
        except Exception as error:
            if not is_of_row(error):
                raise
            run = end.run
            logger.warning(
                "Run %s of %s: its texts cannot be stored: %s",
                run.pk,
                run.job.shown_name,
                error,
                extra={"action": "value_dropped", "job": run.job.name, "run": run.pk},
            )
            errors = {"errors": end.outcome.errors} if end.outcome.errors else None  # they make it a failure
            told = f"not stored: {error!r}"[:500]
            bare = replace(end.outcome, result="", log="", totals=errors, progress=None, state=None, error=told)
            return finish_runs(self._engine, [replace(end, outcome=bare)], in_doubt=True)
