"""Recorder: writes the ends of runs in batches, and never loses one to a database that is away."""

import logging
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime

from django.db import DataError, IntegrityError, InterfaceError, OperationalError

from scheduler.engine.base import Claimed, Engine
from scheduler.engine.finish import Finished, Outcome, Settled, finish_runs
from scheduler.executors.invoke import CLOCK_WAS_SET

logger = logging.getLogger("scheduler")

DATABASE_AWAY = (OperationalError, InterfaceError)
LARGEST_BATCH = 500
GATHER_SECONDS = 0.01
"""Rest between two batches while the pool is pressed: one transaction for every end would cost more than the runs."""


def _not_after(end: Finished, now: datetime) -> Finished:
    started_at = min(end.outcome.started_at, now)
    return replace(end, outcome=replace(end.outcome, started_at=started_at, finished_at=now))


class Recorder:
    """Collects outcomes and writes them: as many as came while the last batch was being written, at once."""

    def __init__(
        self, engine: Engine, settled: Callable[[Settled], None], now: Callable[[], datetime] | None = None
    ) -> None:
        self._engine = engine
        self._now = now
        self._settled = settled
        self._lock = threading.Lock()
        self._ends: deque[Finished] = deque()
        self._batch: list[Finished] = []
        self._in_doubt = False
        self.gathers = False
        """Whether a batch was written just now, so that the next look comes by itself."""

    def put(self, claimed: Claimed, outcome: Outcome) -> None:
        """Take the end of a run; without the lock, at which workers would wait for each other."""
        self._ends.append(Finished(claimed.run, outcome))

    def pending(self) -> int:
        """Return how many ends are not written yet."""
        with self._lock:
            return len(self._ends) + len(self._batch)

    def unwritten(self) -> set[int]:
        """Return the ids of the runs whose ends are not written yet."""
        with self._lock:
            return {end.run.pk for end in (*self._batch, *self._ends.copy())}

    def write(self) -> int:
        """Write what there is, at most one batch; returns how many. What an error leaves is kept for the next try."""
        batch = self._next_batch()
        if not batch:
            return 0
        unwritten, settled = list(batch), Settled()
        try:
            self._write(unwritten, settled)
        finally:
            with self._lock:
                self._ends.extendleft(reversed(unwritten))
                self._batch = []
            self._in_doubt = bool(unwritten)
            if len(unwritten) < len(batch):
                self._settled(settled)
        return len(batch)

    def _next_batch(self) -> list[Finished]:
        with self._lock:
            self.gathers = False  # before the look: an end that comes after it wakes us
            batch = [self._ends.popleft() for _ in range(min(LARGEST_BATCH, len(self._ends)))]
            self._batch = self._in_time(batch)
            self.gathers = bool(batch)
            return self._batch

    def _in_time(self, ends: list[Finished]) -> list[Finished]:
        """Move ends that lie in the future to now: the clock was set back while they waited for the database."""
        if self._now is None:
            return ends
        now = self._now()
        return [_not_after(end, now) if end.outcome.finished_at - now > CLOCK_WAS_SET else end for end in ends]

    def _write(self, unwritten: list[Finished], settled: Settled) -> None:
        """Take out what has been written, and tell `settled` of it."""
        try:
            settled += finish_runs(self._engine, unwritten, in_doubt=self._in_doubt)
            unwritten.clear()
        except DATABASE_AWAY:
            raise
        except Exception:
            self._write_each(unwritten, settled)

    def _write_each(self, unwritten: list[Finished], settled: Settled) -> None:
        """One of them cannot be written: the others shall not wait for it."""
        problem = None
        for end in list(unwritten):
            try:
                settled += self._write_one(end)
                unwritten.remove(end)
            except DATABASE_AWAY:
                raise
            except Exception as error:
                problem = error
        if problem is not None:
            raise problem

    def _write_one(self, end: Finished) -> Settled:
        """One end of the batch cannot be stored: write it without its texts rather than lose how the run ended."""
        try:
            return finish_runs(self._engine, [end], in_doubt=True)
        except (DataError, IntegrityError, ValueError, TypeError) as error:
            logger.warning("The texts of run %s cannot be stored: %s", end.run.pk, error)
            bare = replace(
                end.outcome, result="", log="", totals=None, state=None, error=f"not stored: {error!r}"[:500]
            )
            return finish_runs(self._engine, [replace(end, outcome=bare)], in_doubt=True)
