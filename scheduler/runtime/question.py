"""Question: something that may never be answered, asked in a thread, so that a request waits only as long as it can."""

import os
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Generic, TypeVar

from django.db import connections

from scheduler.clock import Clock

T = TypeVar("T")

LEFT_AFTER = 30.0
"""Seconds until a thread without an answer is left to itself: a connection may hang longer than what it hangs on."""
MOST_LEFT = 5
"""So many such threads at most; no further one is started until one of them ends."""


class Question(Generic[T]):
    """One question of this process. Requests that come while it is being asked wait for the same answer."""

    def __init__(self, ask: Callable[[], T], clock: Clock) -> None:
        self._ask = ask
        self._clock = clock
        self._begin()

    def _begin(self) -> None:
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._answer: Future[T] | None = None
        self._asked_at = float("-inf")
        self._threads: list[threading.Thread] = []

    def answer(self, seconds: float) -> T:
        """Return the answer, or raise what it raised; TimeoutError when there is none within the time."""
        if self._pid != os.getpid():  # threads stay in the parent
            self._begin()
        with self._lock:
            answer = self._asked()
        return answer.result(seconds)

    def _asked(self) -> "Future[T]":
        now = self._clock.monotonic()
        if self._answer is not None and not self._answer.done() and now - self._asked_at < LEFT_AFTER:
            return self._answer
        self._threads = [thread for thread in self._threads if thread.is_alive()]
        if self._answer is None or self._answer.done() or len(self._threads) <= MOST_LEFT:
            self._answer, self._asked_at = Future(), now
            thread = threading.Thread(target=self._run, args=[self._answer], name="scheduler-question", daemon=True)
            self._threads.append(thread)
            thread.start()
        return self._answer

    def _run(self, answer: "Future[T]") -> None:
        try:
            answer.set_result(self._ask())
        except BaseException as error:
            answer.set_exception(error)
        finally:
            connections.close_all()
