"""Queue: the runs that wait for their start, the next one first. The caller must hold the lock of the pool."""

import heapq
from collections import deque
from collections.abc import Iterator
from itertools import chain, count

from scheduler.engine.base import Claimed
from scheduler.executors.live_run import Living

LONGEST_TURN = 0.5
"""Seconds that a run waits for a worker; after that another instance may take it, or a request to stop end it."""
DUE_ALREADY = 0.0
"""Sorts before every start to come; among themselves these go by priority, then as they came."""
IDLE_WAIT = 60.0


class Queue:
    """Runs by their start, then by priority, then as they came; tasks behind all that are due, in the order they came.

    Instants are on the monotonic clock.
    """

    def __init__(self) -> None:
        self._entries: list[tuple[float, int, int, Living]] = []
        self._tasks: deque[Living] = deque()
        self._order = count()

    def __len__(self) -> int:
        return len(self._entries) + len(self._tasks)

    def __iter__(self) -> Iterator[Living]:
        return chain((living for *_, living in self._entries), self._tasks)

    @property
    def tasks(self) -> int:
        """How many of them are tasks."""
        return len(self._tasks)

    def put(self, living: Living, *, is_due: bool) -> None:
        """Add a run that may start at its `due`, or at once."""
        if living.is_task:
            self._tasks.append(living)
            return
        start = DUE_ALREADY if is_due else living.due
        heapq.heappush(self._entries, (start, -living.claimed.job.priority, next(self._order), living))

    def wait(self, now: float, *, tasks: bool = True) -> float:
        """Return the seconds until the first run may start; without `tasks` the first that is none."""
        wait = self._entries[0][0] - now if self._entries else IDLE_WAIT
        return 0.0 if tasks and self._tasks and wait > 0 else wait

    def take(self, now: float) -> Living:
        """Take out the first run that may start."""
        if self._tasks and not (self._entries and self._entries[0][0] <= now):
            return self._tasks.popleft()
        return heapq.heappop(self._entries)[-1]

    def keeps_waiting(self, now: float) -> bool:
        """Return whether a run waits for a worker too long."""
        return any(living.due <= now - LONGEST_TURN for living in self)

    def withdraw(self, now: float = float("inf")) -> list[Claimed]:
        """Take out all runs; only those that wait too long for a worker at `now`, if given."""
        latest = now - LONGEST_TURN
        back = [living.claimed for living in self if living.due <= latest]
        if back:
            self._entries = [entry for entry in self._entries if entry[-1].due > latest]
            self._tasks = deque(living for living in self._tasks if living.due > latest)
            heapq.heapify(self._entries)
        return back
