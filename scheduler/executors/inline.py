"""Inline: run at once, in the calling thread. For commands and tests."""

from contextvars import copy_context

from scheduler.clock import Clock
from scheduler.engine.base import Claimed
from scheduler.executors.base import Done
from scheduler.executors.invoke import context_for, invoke


class InlineExecutor:
    """Runs each task inside `submit`. What it activates (a language, a time zone) ends with its run."""

    def __init__(self, done: Done, clock: Clock, *, capacity: int = 100) -> None:
        self._done = done
        self._clock = clock
        self._capacity = capacity

    def capacity(self) -> int:
        return self._capacity

    def submit(self, claimed: Claimed) -> None:
        self._done(claimed, copy_context().run(invoke, claimed, context_for(claimed), self._clock))
