"""Thread: a fixed pool of workers that start each run exactly at its instant."""

import heapq
import threading
from collections.abc import Callable, Iterable
from contextvars import copy_context
from functools import partial
from itertools import count

from scheduler.clock import Clock
from scheduler.conf import conf
from scheduler.context import RunContext
from scheduler.engine.base import Claimed
from scheduler.engine.finish import Outcome
from scheduler.engine.plan import policy_of
from scheduler.executors.base import Done
from scheduler.executors.invoke import ainvoke, ask_and_tell, context_for, faulty, invoke
from scheduler.executors.living import Living
from scheduler.executors.loop import LoopThread
from scheduler.functions import is_async

BATCH_SECONDS = 0.05
"""Claim as much as the pool can start within this time, so that a burst is shared and nothing is hoarded."""
LARGEST_BATCH = 500
LARGEST_QUEUE = 2 * LARGEST_BATCH
"""One batch is being started while the next one is claimed; what is due at one instant is claimed before it comes."""
MOST_ASYNC = 200
SHORTEST_RUN = 0.0001
IDLE_WAIT = 60.0
LONGEST_TURN = 0.5
"""Seconds that a run waits for a worker; after that others may have it, and whoever would stop it shall."""
DUE_ALREADY = 0.0
"""Sorts before every start to come; among themselves these go by priority, then as they came."""
LAST_STEPS = 0.2
"""Seconds that an idle worker is given to end."""
LEASE_LOOK = 0.1
"""Seconds between two looks whether runs may start again."""


class ThreadExecutor:
    """Runs tasks in `workers` daemon threads, and `async def` tasks on one event loop.

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
        self._queue: list[tuple[float, int, int, Living]] = []
        self._order = count()
        self._held: set[int] = set()
        """The runs that wait for their start or go on: none is taken twice."""
        self._living: dict[int, Living] = {}
        self._threads: list[threading.Thread] = []
        self._loop = LoopThread()
        self._busy = 0
        self._seconds_per_run = BATCH_SECONDS
        self._stopping = False

    def capacity(self) -> int:
        """Return how many runs may be claimed now: at least the free workers, more when runs are short.

        A worker whose run takes longer than a batch starts nothing soon, however short the runs before were.
        """
        with self._changed:
            self._start_missing_threads()
            workers = sum(thread.is_alive() for thread in self._threads)
            free = workers - self._busy
            if self._stopping or free <= 0 < self._zombies() or len(self._living) - self._busy >= MOST_ASYNC:
                return 0
            pace = int((workers - self._slow()) * BATCH_SECONDS / self._seconds_per_run)
            wanted = min(LARGEST_QUEUE, max(free, pace)) if workers else 0
            return max(0, min(LARGEST_BATCH, wanted - len(self._queue)))

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
            self._changed.notify(len(runs))
        for fault in faults:
            self._done(*fault)

    def withdraw(self, *, late: bool = False) -> list[Claimed]:
        """Take back every run that has not started; only those that wait for a worker too long, if asked for `late`."""
        with self._changed:
            latest = self._clock.monotonic() - LONGEST_TURN if late else float("inf")
            back = [living.claimed for *_, living in self._queue if living.due <= latest]
            if back:
                self._queue = [entry for entry in self._queue if entry[-1].due > latest]
                heapq.heapify(self._queue)
                self._held.difference_update(claimed.run.pk for claimed in back)
            return back

    def keeps_waiting(self) -> bool:
        """Return whether a run waits for a worker too long."""
        with self._changed:
            latest = self._clock.monotonic() - LONGEST_TURN
            return any(living.due <= latest for *_, living in self._queue)

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
            held = [*self._living.values(), *(living for *_, living in self._queue)]
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
                left = deadline - self._clock.monotonic()
                if left <= 0:
                    return False
                self._clock.wait(self._changed, left)
        return True

    def close(self) -> None:
        """End the loop of async tasks and the workers; one that is held by a run that never ends is left behind.

        A thread that still runs while the interpreter shuts down can abort the process.
        """
        self.request_stop()
        loop = self._loop.stop()
        held = {living.thread_id for living in self.living() if living.holds_worker}
        idle = [thread for thread in self._threads if thread.ident not in held]
        for thread in [*idle, *([loop] if loop else [])]:
            if thread is not threading.current_thread():
                thread.join(LAST_STEPS)

    def thread_states(self) -> dict[str, bool]:
        """Return which workers live, by thread name."""
        return {thread.name: thread.is_alive() for thread in list(self._threads)}

    def loop_state(self) -> dict[str, bool]:
        """Return whether the thread of async tasks lives, by its name; nothing when there is none."""
        return self._loop.thread_states()

    def _start_missing_threads(self) -> None:
        self._threads = [thread for thread in self._threads if thread.is_alive()]
        for _ in range(self._workers - len(self._threads)):
            thread = threading.Thread(target=self._work, name=f"scheduler-worker-{next(self._order)}", daemon=True)
            try:
                thread.start()
            except RuntimeError:  # no more threads to be had: fewer workers claim less, nothing is lost
                return
            self._threads.append(thread)

    def _enqueue(self, claimed: Claimed, due: float, *, is_due: bool) -> None:
        if claimed.run.pk not in self._held:
            living = self._prepared(claimed, due)  # first, since this may fail
            self._held.add(claimed.run.pk)
            start = DUE_ALREADY if is_due else due
            heapq.heappush(self._queue, (start, -claimed.job.priority, next(self._order), living))

    def _prepared(self, claimed: Claimed, due: float) -> Living:
        """Return all that the start needs, made ahead of it."""
        on_loop = is_async(claimed.task.function) and policy_of(claimed.job).executor == "thread"
        return Living(claimed, self._context_for(claimed), holds_worker=True, on_loop=on_loop, due=due)

    def _slow(self) -> int:
        """Return how many workers are held by runs that take longer than a batch."""
        longest_ago = self._clock.monotonic() - BATCH_SECONDS
        return sum(one.holds_worker and one.began < longest_ago for one in self._living.values())

    def _zombies(self) -> int:
        return sum(one.holds_worker and (one.over_time or one.abandoned) for one in self._living.values())

    def _work(self) -> None:
        ended = None
        while (living := self._take(ended)) is not None:
            ended = self._carried_out(living)

    def _take(self, ended: Living | None) -> Living | None:
        """Let go of the run that has ended, wait for the start of the earliest and take it; None when the pool stops.

        All under one hold of the lock: workers that hold it twice a run wait for each other at every step.
        """
        with self._changed:
            if ended is not None:
                self._let_go(ended)
            while not self._stopping:
                now = self._clock.monotonic()
                wait = self._queue[0][0] - now if self._queue else IDLE_WAIT
                if wait <= 0 and self._may_start():
                    return self._begin(heapq.heappop(self._queue)[-1], now)
                wait = wait if wait > 0 else LEASE_LOOK
                self._clock.wait(self._changed, wait)
        return None

    def _begin(self, living: Living, now: float) -> Living:
        living.began, living.thread_id = now, threading.get_ident()
        self._living[living.claimed.run.pk] = living
        self._busy += 1
        return living

    def _carried_out(self, living: Living) -> Living | None:
        """Carry out a run in this worker, or hand it to the event loop; returns it if it has ended.

        Whatever goes wrong around the task (a logging handler that fails, say) ends the run, not us. What it activates
        (a language, a time zone) ends with it, too.
        """
        try:
            outcome = copy_context().run(self._outcome, living)
        except BaseException as error:
            outcome = faulty(living.claimed, error, self._clock)
        if outcome is None:
            self._freed()  # the worker is free again although no run has ended
            return None
        self._end(living, outcome)
        return living

    def _outcome(self, living: Living) -> Outcome | None:
        """Return how the run ended in this worker; None when it goes on, on the event loop."""
        if self._refusal is not None and (refused := self._refusal(living)):
            return refused
        if not living.on_loop:
            return self._call(living)
        if (ended := ask_and_tell(living.claimed, living.context, self._clock)) is not None:
            return ended
        self._hand_to_loop(living)
        return None

    def _hand_to_loop(self, living: Living) -> None:
        with self._changed:
            living.holds_worker = False
            self._busy -= 1
        run = self._run_async(living)
        try:
            living.cancel = self._loop.run(run, partial(self._lost, living))
        except Exception:  # no thread, or no file descriptor, is left for it
            run.close()
            raise
        if living.context.stop_requested:  # asked just now, when there was nothing to cancel yet
            living.cancel()

    def _call(self, living: Living) -> Outcome:
        claimed, policy = living.claimed, policy_of(living.claimed.job)
        if policy.executor == "process":
            from scheduler.executors.process import run_in_process

            return run_in_process(claimed, living.context, self._clock, timeout=policy.timeout)
        return invoke(claimed, living.context, self._clock)

    async def _run_async(self, living: Living) -> None:
        try:
            outcome = await ainvoke(living.claimed, living.context, self._clock)
        except BaseException as error:
            outcome = faulty(living.claimed, error, self._clock)
        self._end_async(living, outcome)

    def _lost(self, living: Living, error: Exception) -> None:
        self._end_async(living, faulty(living.claimed, error, self._clock))

    def _end_async(self, living: Living, outcome: Outcome) -> None:
        """End a run of the event loop, once: of one whose loop broke, what is left of its call may end later."""
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
            self._busy -= 1
            self._seconds_per_run += (max(living.took, SHORTEST_RUN) - self._seconds_per_run) / 8
        if self._stopping:
            self._changed.notify_all()
        self._freed()
