"""Pool: a fixed number of worker threads that start each run exactly at its instant, and have its caller call it."""

import os
import threading
from collections.abc import Callable, Iterable
from contextvars import copy_context

from scheduler.clock import Clock
from scheduler.conf import conf
from scheduler.context import RunContext
from scheduler.engine.base import Claimed
from scheduler.engine.claim_ahead import NO_REACH, Reach
from scheduler.engine.finish import Outcome
from scheduler.executors.base import Done
from scheduler.executors.call import context_for, faulty
from scheduler.executors.callers import Callers
from scheduler.executors.forked import stay
from scheduler.executors.live_run import Living
from scheduler.executors.pace import BATCH_SECONDS, MOST_ASYNC, Pace
from scheduler.executors.queue import Queue
from scheduler.executors.worker_threads import WorkerThreads, join
from scheduler.models.instance import Workers

MOST_TOLD = 100
"""So many of the runs that wait for a worker are told to others by their keys."""
LEASE_LOOK = 0.1
"""Seconds between two looks whether runs may start again."""


class Pool:
    """Carries out runs by `workers` daemon threads; only their callers know how.

    Workers wait for the start of the earliest run, so the latency of a start is one hand-off between threads.
    `refusal`, if there is one, is asked at that start: a run it has an outcome for ends with it and is not carried out.
    """

    def __init__(
        self,
        done: Done,
        clock: Clock,
        *,
        workers: int,
        freed: Callable[[], None] = lambda: None,
        may_start: Callable[[], bool] = lambda: True,
        refusal: Callable[[Living], Outcome | None] | None = None,
        context_for: Callable[[Claimed], RunContext] = context_for,
    ) -> None:
        self._done = done
        self._freed = freed
        self._may_start = may_start
        self._refusal = refusal
        self._context_for = context_for
        self._clock = clock
        self._workers = workers
        self._changed = threading.Condition()
        self._queue = Queue()
        self._held: set[int] = set()
        """The runs that wait for their start or go on: none is taken twice."""
        self._living: dict[int, Living] = {}
        self._threads = WorkerThreads(self._work)
        self._callers = Callers()
        self._busy = self._tasks_on_workers = self._half_of_tasks = 0
        """How many runs hold a worker, how many of them are tasks, and half of those that waited when the last came."""
        self._pace = Pace()
        self._stopping = False

    def capacity(self) -> int:
        """Return how many runs may be claimed now: at least the free workers, more when runs are short.

        A worker whose run takes longer than a batch starts nothing soon, however short the runs before were.
        """
        with self._changed:
            if self._stopping:
                return 0  # and workers that have ended are not replaced
            self._threads.complete(self._workers)
            free = (workers := self._threads.alive()) - self._busy
            if free <= 0 < self._zombies() or len(self._living) - self._busy >= MOST_ASYNC:
                return 0
            waiting = len(self._queue) - self._queue.tasks
            return self._pace.room(free=free, quick=workers - self._slow(), waiting=waiting)

    def task_capacity(self) -> int:
        """Return how many tasks may be claimed now: one worker is left to the plan, where there are several."""
        with self._changed:
            workers = self._threads.alive()
            kept = int(workers > 1)
            free, quick = workers - self._busy - kept, workers - self._slow() - kept
            if self._stopping or len(self._living) - self._busy >= MOST_ASYNC:
                return 0
            return self._pace.room(free=max(0, free), quick=max(0, quick), waiting=len(self._queue))

    def wants_tasks(self) -> bool:
        """Return whether tasks may be claimed, and half of what may wait here has been started: claims cost much."""
        with self._changed:
            waiting = self._queue.tasks
        return waiting <= self._half_of_tasks and waiting <= (room := self.task_capacity()) and room > 0

    def grow(self, workers: int) -> None:
        """Have at least as many workers as that from now on."""
        with self._changed:
            self._workers = max(self._workers, workers)

    def reach(self) -> Reach:
        """Return what may be claimed ahead of its instant beyond the capacity, by what free workers end in a turn."""
        with self._changed:
            free = self._threads.alive() - self._busy
            if self._stopping or free <= 0:
                return NO_REACH
            return self._pace.reach(free=free, waiting=list(self._queue), living=list(self._living.values()))

    def room_for_users(self) -> int:
        """Return how many more runs for users may hold a worker: one is left to the plan, where there are several.

        The only one there is they may have while it is idle. On the event loop there is room for all.
        """
        with self._changed:
            held = [*self._living.values(), *self._queue]
            if self._workers == 1:
                return int(not any(one.holds_worker for one in held))
            users: int = sum(one.holds_worker and not one.on_loop and one.is_for_user for one in held)
            return max(0, self._workers - 1 - users)

    def is_pressed(self) -> bool:
        """Return whether runs wait for a worker, or for their start."""
        return bool(self._queue)

    def submit(self, *runs: Claimed) -> None:
        """Take runs, to start each at its instant. One whose start cannot be prepared has failed; the others go on."""
        now, monotonic, longest = self._clock.now(), self._clock.monotonic(), conf.CLAIM_AHEAD
        faults = []
        with self._changed:
            for claimed in runs:
                try:
                    # Nothing is claimed earlier; a longer wait only means that the clock was set back since.
                    wait = min(longest, (claimed.start_at - now).total_seconds())
                    self._enqueue(claimed, monotonic + max(wait, 0.0), is_due=wait <= 0)
                except Exception as error:
                    faults.append((claimed, faulty(claimed, error, self._clock)))
            self._half_of_tasks = self._queue.tasks // 2
            self._changed.notify(len(runs))
        for fault in faults:
            self._done(*fault)

    def withdraw(self, *, late: bool = False) -> list[Claimed]:
        """Take back every run that has not started; only those that wait for a worker too long, if asked for `late`."""
        with self._changed:
            back = self._queue.withdraw(self._clock.monotonic()) if late else self._queue.withdraw()
            self._held.difference_update(claimed.run.pk for claimed in back)
            return back

    def keeps_waiting(self) -> bool:
        """Return whether a run waits for a worker too long."""
        with self._changed:
            return self._queue.keeps_waiting(self._clock.monotonic())

    def run_ids(self) -> set[int]:
        """Return the runs that wait for their start or go on."""
        with self._changed:
            return set(self._held)

    def living(self) -> list[Living]:
        """Return the runs that are going on."""
        with self._changed:
            return list(self._living.values())

    def zombies(self) -> int:
        """Return how many workers are held by runs that are over their time or were abandoned."""
        with self._changed:
            return self._zombies()

    def stop_runs(self, run_ids: Iterable[int], reason: str) -> None:
        """Ask some of the runs to stop: one that waits for its start then ends without its call."""
        wanted = set(run_ids)
        with self._changed:
            held = [*self._living.values(), *self._queue]
        for living in held:
            if living.claimed.run.pk in wanted:
                living.stop(reason)

    def request_stop(self) -> None:
        """Ask every living run to stop, and start no more."""
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
        for living in self.living():
            living.context.request_stop("shutdown")

    def wait_until_idle(self, seconds: float) -> bool:
        """Wait until no run is living; False when `seconds` were not enough."""
        deadline = self._clock.monotonic() + seconds
        with self._changed:
            while self._living:
                if (left := deadline - self._clock.monotonic()) <= 0:
                    return False
                self._clock.wait(self._changed, left)
        return True

    def close(self) -> None:
        """End the loop of async tasks and the workers; one that is held by a run that never ends is left behind."""
        self.request_stop()
        loop = self._callers.loop.stop()
        self._threads.join_idle({living.thread_id for living in self.living() if living.holds_worker})
        join([loop] if loop else [])

    def told(self) -> Workers:
        """Return how many workers there are and hold a run, and what waits for one, for the row of the instance."""
        with self._changed:
            waiting = tuple(one.claimed.run.pk for one in self._queue)
            apart = tuple(run_id for run_id, one in self._living.items() if not one.holds_worker)
            return Workers(self._workers, self._busy, len(waiting), waiting[:MOST_TOLD], apart)

    def thread_states(self) -> dict[str, bool]:
        """Return which workers live, by thread name."""
        return self._threads.states()

    def loop_state(self) -> dict[str, bool]:
        """Return whether the thread of async tasks lives, by its name; nothing when there is none."""
        return self._callers.loop.thread_states()

    def _enqueue(self, claimed: Claimed, due: float, *, is_due: bool) -> None:
        if claimed.run.pk not in self._held:
            caller = self._callers.of(claimed)  # all that the start needs is made ahead of it, and may fail
            on_loop = caller is self._callers.loop
            living = Living(claimed, self._context_for(claimed), caller, on_loop=on_loop, due=due)
            self._held.add(claimed.run.pk)
            self._queue.put(living, is_due=is_due)

    def _slow(self) -> int:
        """Return how many workers are held by runs that take longer than a batch."""
        before = self._clock.monotonic() - BATCH_SECONDS
        return sum(one.holds_worker and one.began < before for one in self._living.values())

    def _zombies(self) -> int:
        return sum(one.holds_worker and (one.over_time or one.abandoned) for one in self._living.values())

    def _work(self) -> None:
        ended: list[Living] = []  # the only place where a run that has ended is kept: an idle worker keeps none
        while self._carry_out_next(ended):
            pass

    def _carry_out_next(self, ended: list[Living]) -> bool:
        if (living := self._take(ended)) is None:
            return False
        if (over := self._carried_out(living)) is not None:
            ended.append(over)
        return True

    def _take(self, ended: list[Living]) -> Living | None:
        """Let go of the run that has ended, wait for the start of the earliest and take it; None when the pool stops.

        All under one hold of the lock: workers that hold it twice a run wait for each other at every step.
        """
        with self._changed:
            if ended:
                self._let_go(ended.pop())
            while not self._stopping:
                now = self._clock.monotonic()
                wait = self._queue.wait(now, tasks=self._tasks_on_workers < max(1, self._workers - 1))
                if wait <= 0 and self._may_start():
                    return self._begin(self._queue.take(now), now)
                self._clock.wait(self._changed, wait if wait > 0 else LEASE_LOOK)
        return None

    def _begin(self, living: Living, now: float) -> Living:
        living.began, living.thread_id = now, threading.get_ident()
        self._living[living.claimed.run.pk] = living
        self._hold(living, 1)
        return living

    def _hold(self, living: Living, change: int) -> None:
        """Count a run that holds a worker, or lets go of it."""
        living.holds_worker = change > 0
        self._busy += change
        self._tasks_on_workers += change * living.is_task

    def _carried_out(self, living: Living) -> Living | None:
        """Have a run called in this worker; returns it if it has ended.

        Whatever goes wrong around the task (a logging handler that fails, say) ends the run, not us. What it activates
        (a language, a time zone) ends with it, too.
        """
        here = os.getpid()
        try:
            outcome = copy_context().run(self._outcome, living)
            stay(here)
        except BaseException as error:
            stay(here, error)
            outcome = faulty(living.claimed, error, self._clock)
        if outcome is None:
            self._free_worker(living)
            return None
        self._end(living, outcome)
        return living

    def _outcome(self, living: Living) -> Outcome | None:
        """Return how the run ended in this worker; None when it goes on without it."""
        if self._refusal is not None and (refused := self._refusal(living)):
            return refused
        return living.caller.call(living, self._clock, self._end_elsewhere)

    def _free_worker(self, living: Living) -> None:
        """Note that a run goes on without its worker, unless it has ended since."""
        with self._changed:
            if living.holds_worker:
                self._hold(living, -1)
        self._freed()

    def _end_elsewhere(self, living: Living, outcome: Outcome) -> None:
        """End a run that has no worker, once: of one whose event loop broke, what is left of its call may end later."""
        with self._changed:
            if living.ended:
                return
            living.ended = True
        self._end(living, outcome)
        with self._changed:
            self._let_go(living)

    def _end(self, living: Living, outcome: Outcome) -> None:
        living.took = (outcome.finished_at - outcome.started_at).total_seconds()
        self._done(living.claimed, outcome)  # before the run leaves the living: a stop waits for those only

    def _let_go(self, living: Living) -> None:
        del self._living[living.claimed.run.pk]
        self._held.discard(living.claimed.run.pk)
        if living.holds_worker:
            self._hold(living, -1)
            if not living.on_loop:
                self._pace.note(living.claimed.job.task, living.took)
        if self._stopping:
            self._changed.notify_all()
        self._freed()
