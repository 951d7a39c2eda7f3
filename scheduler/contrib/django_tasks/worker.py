"""In the worker: the task that takes an attempt. Its name in every message is `run_attempt` of this module."""

import logging
import signal
from contextlib import suppress
from importlib import import_module
from types import FrameType
from typing import Any

from django.conf import settings

from scheduler.conf import conf
from scheduler.contrib.django_tasks.backends import DEFAULT, LIBRARY, backend_named, queue_of
from scheduler.exceptions import ConfigurationError, InvalidOption
from scheduler.runtime.interrupt import HearsSigterm
from scheduler.runtime.taking import take

logger = logging.getLogger("scheduler")
NAME = "run_attempt"


class _Stop(HearsSigterm):
    """Whether the worker was told to stop, which hears it, too. A second SIGTERM has the effect it had before."""

    def __init__(self) -> None:
        super().__init__()
        self.came: signal.Signals | None = None

    def _hear(self, number: int, frame: FrameType | None) -> None:
        self.came = signal.SIGTERM
        if callable(self._before):
            self._before(number, frame)
        else:
            signal.signal(signal.SIGTERM, self._before or signal.SIG_DFL)


def _run_attempt(run_id: Any) -> str | None:
    """Run an attempt by its id; return how it ended, None when it is not to be run (any more)."""
    try:
        with _Stop() as stop:
            run = take(run_id, stop=stop, patience=conf.SHUTDOWN_SECONDS)
    except InvalidOption as error:
        logger.warning("A message of Django Tasks starts nothing: %s", error, extra={"action": "attempt_unknown"})
        return None
    if run is None:
        logger.debug("Attempt %s is not to be run (any more)", run_id, extra={"action": "attempt_over"})
        return None
    return str(run.status)


_run_attempt.__name__ = _run_attempt.__qualname__ = NAME  # workers import the task by the path of its function


def task_for(backend: Any, *, queue: str | None = None, priority: int = 0) -> Any:
    """Return the generic task for a backend, which checks it."""
    task = import_module(LIBRARY).task
    return task(backend=backend.alias, queue_name=queue or queue_of(backend), priority=priority)(_run_attempt)


def __getattr__(name: str) -> Any:
    """Make `run_attempt` when a worker imports it: a task is checked against its backend, which needs TASKS.

    It is one for the first backend that can take runs; who enqueues or calls it names its own.
    """
    if name != NAME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    for alias in getattr(settings, "TASKS", {}):
        with suppress(ConfigurationError):
            return task_for(backend_named(alias))
    return task_for(backend_named(DEFAULT))  # which raises why
