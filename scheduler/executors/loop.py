"""Loop: `async def` tasks run on one asyncio loop, in a thread of its own that is started when first needed."""

import asyncio
import logging
import threading
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

from scheduler.clock import Clock
from scheduler.engine.finish import Outcome
from scheduler.executors.base import Ended
from scheduler.executors.call import ainvoke, ask_and_tell, faulty
from scheduler.executors.forked import guard_loop
from scheduler.executors.live_run import Living
from scheduler.safetext import counted

logger = logging.getLogger("scheduler")

NAME = "asyncio"

Lost = Callable[[Exception], object]
"""Told when the loop broke: the coroutine goes no further, and does not see its own end."""


class LoopBroken(RuntimeError):
    """What serves the async tasks of this process does not work any more."""


class LoopThread:
    """One event loop in one daemon thread. One that breaks is replaced when the next task comes."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._serving: _Serving | None = None

    def run(self, coroutine: Coroutine[Any, Any, None], lost: Lost) -> Callable[[], object]:
        """Start a coroutine on the loop and return at once, with what cancels it. `lost` is told if the loop breaks.

        Raises OSError or RuntimeError when there is no loop yet, and this process can have no descriptor or thread.
        """
        with self._lock:
            if self._serving is None or self._serving.broken:
                self._serving = _Serving()
            serving = self._serving
        return serving.take(coroutine, lost)

    def stop(self) -> threading.Thread | None:
        """Cancel what runs on the loop and end it; return its thread, if there was one, which ends after that."""
        with self._lock:
            serving, self._serving = self._serving, None
        if serving is None:
            return None
        serving.leave()
        return serving.thread

    def thread_states(self) -> dict[str, bool]:
        """Return whether the thread of the loop lives, by its name; nothing when none is needed."""
        serving = self._serving
        return {} if serving is None or serving.broken else {NAME: serving.thread.is_alive()}


class OnLoop(LoopThread):
    """Calls `async def` tasks. What may block before the call, such as a gate, is done in the worker."""

    keeps_time = False

    def call(self, living: Living, clock: Clock, ended: Ended) -> Outcome | None:
        """See `Caller`. Raises where there is no loop, and no thread or file descriptor for one."""
        if (over := ask_and_tell(living.claimed, living.context, clock)) is not None:
            return over
        run = self._run(living, clock, ended)
        try:
            living.cancel = self.run(run, lambda error: ended(living, faulty(living.claimed, error, clock)))
        except Exception:
            run.close()
            raise
        if living.context.stop_requested:  # asked just now, when there was nothing to cancel yet
            living.cancel()
        return None

    @staticmethod
    async def _run(living: Living, clock: Clock, ended: Ended) -> None:
        try:
            outcome = await ainvoke(living.claimed, living.context, clock)
        except BaseException as error:
            outcome = faulty(living.claimed, error, clock)
        ended(living, outcome)


class _Serving:
    """A loop and the thread that serves it until `leave`, whatever its tasks do; without thread there is no loop."""

    def __init__(self) -> None:
        self.broken = False
        self._leaving = False
        self._lock = threading.Lock()
        self._going: dict[Coroutine[Any, Any, None], Lost] = {}
        self._loop = asyncio.new_event_loop()
        guard_loop(self._loop)
        self.thread = threading.Thread(target=self._serve, name=f"scheduler-{NAME}", daemon=True)
        try:
            self.thread.start()
        except BaseException:
            self._loop.close()
            raise

    def take(self, coroutine: Coroutine[Any, Any, None], lost: Lost) -> Callable[[], object]:
        """Start a coroutine; return what cancels it."""
        loop = self._loop
        task: asyncio.Task[None] | None = None

        def begin() -> None:
            nonlocal task
            task = loop.create_task(coroutine)
            task.add_done_callback(lambda _: self._going.pop(coroutine, None))

        def cancel() -> None:
            if task is not None:
                task.cancel()

        def cancel_soon() -> None:
            with suppress(RuntimeError):  # the loop has ended, and with it what ran on it
                # One turn of it later than asked for: a task cancelled before its first step would not see its end.
                loop.call_soon_threadsafe(loop.call_soon, cancel)

        with self._lock:
            if self.broken:
                raise LoopBroken
            self._going[coroutine] = lost
            loop.call_soon_threadsafe(begin)
        return cancel_soon

    def leave(self) -> None:
        """Cancel what runs on the loop, and end it after that."""
        with suppress(RuntimeError):  # it has ended already
            self._loop.call_soon_threadsafe(self._cancel_all_and_leave)

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            while not self._leaving:  # also after a task has stopped the loop, which is not its own
                # asyncio lets these two out of any part of a task; the part has ended by it, which is enough.
                with suppress(SystemExit, KeyboardInterrupt):
                    self._loop.run_forever()
        except BaseException as error:
            self._give_up(error)
        with suppress(Exception):  # it may be broken in this, too
            self._loop.close()

    def _give_up(self, error: BaseException) -> None:
        why = LoopBroken(f"the event loop of async tasks broke: {type(error).__name__}: {error}")
        with self._lock:
            self.broken, left = True, list(self._going.values())
        for lost in left:
            lost(why)
        with suppress(Exception):  # a logging handler that fails: the loop is closed all the same
            logger.error(
                "%s; %s ended with it", why, counted(len(left), "run"), extra={"action": "loop_broken"}, exc_info=error
            )

    def _cancel_all_and_leave(self) -> None:
        tasks = asyncio.all_tasks(self._loop)
        for task in tasks:
            task.cancel()
        gathered = asyncio.gather(*tasks, return_exceptions=True)
        gathered.add_done_callback(lambda _: self._leave_now())

    def _leave_now(self) -> None:
        self._leaving = True
        self._loop.stop()
