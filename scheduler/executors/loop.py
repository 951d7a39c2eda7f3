"""The asyncio loop on which `async def` tasks run, in a thread of its own, started when first needed."""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any


class LoopThread:
    """One event loop in one daemon thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    def run(self, coroutine: Coroutine[Any, Any, None]) -> Callable[[], object]:
        """Start a coroutine on the loop and return at once, with what cancels it.

        Raises OSError or RuntimeError when there is no loop yet, and this process can have no descriptor or thread.
        """
        loop = self._started()
        task: asyncio.Task[None] | None = None

        def begin() -> None:
            nonlocal task
            task = loop.create_task(coroutine)

        def cancel() -> None:
            if task is not None:
                task.cancel()

        loop.call_soon_threadsafe(begin)
        # One turn of the loop later than asked for: a task cancelled before its first step would never see its end.
        return lambda: loop.call_soon_threadsafe(loop.call_soon, cancel)

    def stop(self) -> threading.Thread | None:
        """Cancel what runs on the loop and end it; return its thread, if there was one, which ends after that."""
        with self._lock:
            loop, self._loop = self._loop, None
            thread, self._thread = self._thread, None
        if loop is not None:
            loop.call_soon_threadsafe(_cancel_all_and_stop, loop)
        return thread

    def _started(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                self._loop, self._thread = _serving()
            return self._loop


def _serving() -> tuple[asyncio.AbstractEventLoop, threading.Thread]:
    """Return a new loop and the new thread that serves it; without the thread there is no loop either."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=_serve, args=(loop,), name="scheduler-asyncio", daemon=True)
    try:
        thread.start()
    except BaseException:
        loop.close()
        raise
    return loop, thread


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
    finally:
        loop.close()


def _cancel_all_and_stop(loop: asyncio.AbstractEventLoop) -> None:
    tasks = asyncio.all_tasks(loop)
    for task in tasks:
        task.cancel()
    gathered = asyncio.gather(*tasks, return_exceptions=True)
    gathered.add_done_callback(lambda _: loop.stop())
