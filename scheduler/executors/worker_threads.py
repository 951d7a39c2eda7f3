"""WorkerThreads: the daemon threads of a pool, each of which is replaced when it has died."""

import logging
import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from itertools import count

logger = logging.getLogger("scheduler")

LAST_STEPS = 0.2
"""Seconds that an idle worker is given to end."""


class WorkerThreads:
    """As many threads as were asked for, or as there are to be had. The caller holds the lock of the pool."""

    def __init__(self, work: Callable[[], None]) -> None:
        self._work = work
        self._numbers = count()
        self._threads: list[threading.Thread] = []

    def __iter__(self) -> Iterator[threading.Thread]:
        return iter(list(self._threads))

    def alive(self) -> int:
        """Return how many live."""
        return sum(thread.is_alive() for thread in self._threads)

    def states(self) -> dict[str, bool]:
        """Return which live, by name."""
        return {thread.name: thread.is_alive() for thread in self}

    def complete(self, wanted: int) -> None:
        """Start those that are missing from as many as are wanted, and say which had died."""
        died = [thread for thread in self._threads if not thread.is_alive()]
        self._threads = [thread for thread in self._threads if thread.is_alive()]
        for thread in died:
            _say_died(thread)
        for _ in range(wanted - len(self._threads)):
            thread = threading.Thread(target=self._work, name=f"scheduler-worker-{next(self._numbers)}", daemon=True)
            try:
                thread.start()
            except RuntimeError:  # no more threads to be had: fewer workers claim less, nothing is lost
                return
            self._threads.append(thread)

    def join_idle(self, held: Collection[int | None]) -> None:
        """Wait a moment for those to end that hold no run, by their idents: one that runs on is left behind."""
        join([thread for thread in self if thread.ident not in held])


def join(threads: Collection[threading.Thread]) -> None:
    """Wait a moment for each of some threads to end.

    A thread that still runs while the interpreter shuts down can abort the process.
    """
    for thread in threads:
        if thread is not threading.current_thread():
            thread.join(LAST_STEPS)


def _say_died(worker: threading.Thread) -> None:
    with suppress(Exception):  # a logging handler that fails must not end the dispatcher
        logger.error(
            "The worker %s died; a new one is started",
            worker.name,
            extra={"action": "service_restarted", "service": worker.name},
        )
