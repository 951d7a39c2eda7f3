"""Thread: a fixed pool of workers that start each run exactly at its instant."""

import heapq
import threading
from itertools import count

from scheduler.clock import Clock
from scheduler.context import RunContext
from scheduler.engine.base import Claimed
from scheduler.engine.finish import Outcome
from scheduler.executors.base import Done
from scheduler.executors.invoke import ainvoke, context_for, invoke, is_async
from scheduler.executors.loop import LoopThread

BATCH_SECONDS = 0.05
"""Claim as much as the pool can start within this time, so that a burst is shared and nothing is hoarded."""
LARGEST_BATCH = 500
MOST_ASYNC = 200
SHORTEST_RUN = 0.0001
IDLE_WAIT = 60.0


class ThreadExecutor:
    """Runs tasks in `workers` daemon threads, and `async def` tasks on one event loop.

    Workers wait for the start of the earliest run, so the latency of a start is one hand-off between threads.
    """

    def __init__(self, done: Done, clock: Clock, *, workers: int) -> None:
        self._done = done
        self._clock = clock
        self._workers = workers
        self._changed = threading.Condition()
        self._queue: list[tuple[float, int, Claimed]] = []
        self._order = count()
        self._living: dict[int, tuple[Claimed, RunContext]] = {}
        self._threads: list[threading.Thread] = []
        self._loop = LoopThread()
        self._busy = 0
        self._seconds_per_run = BATCH_SECONDS
        self._stopping = False

    def capacity(self) -> int:
        """Return how many runs may be claimed now: at least the free workers, more when runs are short."""
        with self._changed:
            self._start_missing_threads()
            workers = sum(thread.is_alive() for thread in self._threads)
            if self._stopping or not workers or len(self._living) - self._busy >= MOST_ASYNC:
                return 0
            pace = int(workers * BATCH_SECONDS / self._seconds_per_run)
            return max(0, min(LARGEST_BATCH, max(workers - self._busy, pace)) - len(self._queue))

    def submit(self, claimed: Claimed) -> None:
        wait = (claimed.start_at - self._clock.now()).total_seconds()
        with self._changed:
            heapq.heappush(self._queue, (self._clock.monotonic() + wait, next(self._order), claimed))
            self._changed.notify()

    def withdraw(self) -> list[Claimed]:
        """Take back every run that has not started."""
        with self._changed:
            waiting = [claimed for _, _, claimed in self._queue]
            self._queue.clear()
            return waiting

    def living(self) -> list[tuple[Claimed, RunContext]]:
        """Return the runs that are going on."""
        with self._changed:
            return list(self._living.values())

    def request_stop(self) -> None:
        """Ask every living run to stop, and start no more."""
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
            for _, context in self._living.values():
                context.request_stop()

    def wait_until_idle(self, seconds: float) -> bool:
        """Wait until no run is living; False when `seconds` were not enough."""
        deadline = self._clock.monotonic() + seconds
        with self._changed:
            while self._living:
                left = deadline - self._clock.monotonic()
                if left <= 0:
                    return False
                self._clock.wait(self._changed, left)
        return True

    def close(self) -> None:
        """End the loop of async tasks; worker threads end by themselves."""
        self.request_stop()
        self._loop.stop()

    def thread_states(self) -> dict[str, bool]:
        """Return which workers live, by thread name."""
        return {thread.name: thread.is_alive() for thread in list(self._threads)}

    def _start_missing_threads(self) -> None:
        self._threads = [thread for thread in self._threads if thread.is_alive()]
        for _ in range(self._workers - len(self._threads)):
            thread = threading.Thread(target=self._work, name=f"scheduler-worker-{next(self._order)}", daemon=True)
            try:
                thread.start()
            except RuntimeError:  # no more threads to be had: fewer workers claim less, nothing is lost
                return
            self._threads.append(thread)

    def _work(self) -> None:
        while (taken := self._take()) is not None:
            claimed, context = taken
            if is_async(claimed.task.function):
                self._loop.run(self._run_async(claimed, context))
            else:
                self._end(claimed, invoke(claimed, context, self._clock))

    def _take(self) -> tuple[Claimed, RunContext] | None:
        """Wait for the start of the earliest run and take it; None when the pool stops."""
        with self._changed:
            while not self._stopping:
                wait = self._queue[0][0] - self._clock.monotonic() if self._queue else IDLE_WAIT
                if wait <= 0:
                    return self._begin(heapq.heappop(self._queue)[2])
                self._clock.wait(self._changed, wait)
        return None

    def _begin(self, claimed: Claimed) -> tuple[Claimed, RunContext]:
        context = context_for(claimed)
        self._living[claimed.run.pk] = claimed, context
        self._busy += not is_async(claimed.task.function)
        return claimed, context

    async def _run_async(self, claimed: Claimed, context: RunContext) -> None:
        self._end(claimed, await ainvoke(claimed, context, self._clock))

    def _end(self, claimed: Claimed, outcome: Outcome) -> None:
        took = (outcome.finished_at - outcome.started_at).total_seconds()
        with self._changed:
            del self._living[claimed.run.pk]
            if not is_async(claimed.task.function):
                self._busy -= 1
                self._seconds_per_run += (max(took, SHORTEST_RUN) - self._seconds_per_run) / 8
            if self._stopping:
                self._changed.notify_all()
        self._done(claimed, outcome)
