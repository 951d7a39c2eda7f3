"""In the worker: the task that takes an attempt, and what becomes of its run when the worker is told to stop.

Imported before a pool forks, where it opens no connection.
"""

import logging
import math
import mmap
import signal
import threading
from types import FrameType
from typing import Any

from celery import shared_task, signals

from scheduler.clock import SYSTEM_CLOCK
from scheduler.contrib.celery.project import TASK
from scheduler.exceptions import InvalidOption
from scheduler.runtime.attendance import attending
from scheduler.runtime.interrupt import HearsSigterm
from scheduler.runtime.taking import Limit, take
from scheduler.schedules.duration import length_words

logger = logging.getLogger("scheduler")

ONE_SIGNAL = 1.0
"""Seconds in which further signals count as the same one: a group gets it from its supervisor and from its parent."""

_stopping = mmap.mmap(-1, 1)
"""Not 0 when the worker is to stop. Children see it, too: nothing else tells them of a warm shutdown."""


class _Process:
    """What this process is in the worker."""

    is_child = False
    """Whether it is a child of a prefork pool, whose main thread runs the tasks."""
    time_limit: float | None = None
    """The limit that the worker was started with, in seconds."""
    stays: Any = None
    lock = threading.Lock()


def _stay() -> None:
    """Be an instance from now on until the process ends, and not once for each attempt."""
    with _Process.lock:
        if _Process.stays is None:
            _Process.stays = attending()
            _Process.stays.__enter__()


class _Stop(HearsSigterm):
    """Whether the run is to stop, by what the worker was told, and in a child by SIGTERM, which would end it at once.

    A second SIGTERM, some time later, does end it: the run is lost then, and told so.
    """

    def __init__(self) -> None:
        super().__init__(hears=_Process.is_child)
        self._heard_at: float | None = None

    @property
    def came(self) -> signal.Signals | None:
        return signal.SIGTERM if self._heard_at is not None or _stopping[0] else None

    def _hear(self, number: int, frame: FrameType | None) -> None:
        now = SYSTEM_CLOCK.monotonic()
        if self._heard_at is None:
            self._heard_at = now
        elif now - self._heard_at > ONE_SIGNAL:
            raise SystemExit(128 + number)


def _run_attempt(task: Any, run_id: Any) -> str | None:
    """Run an attempt by its id; return how it ended, None when it is not to be run (any more)."""
    try:
        with _Stop() as stop:
            if not task.request.called_directly and not task.request.is_eager:
                _stay()
            run = take(run_id, stop=stop, patience=math.inf, limit=_limit(task))
    except InvalidOption as error:
        logger.warning("A message of Celery starts nothing: %s", error, extra={"action": "attempt_unknown"})
        return None
    if run is None:
        logger.debug("Attempt %s is not to be run (any more)", run_id, extra={"action": "attempt_over"})
        return None
    return str(run.status)


def _limit(task: Any) -> Limit | None:
    """Return the hard time limit of Celery, at which the pool kills this child."""
    given = (task.request.timelimit or (None,))[0]
    seconds = given or task.time_limit or _Process.time_limit or task.app.conf.task_time_limit
    if not seconds or not _Process.is_child:
        return None
    return Limit(float(seconds), f"the time limit of Celery ({length_words(seconds)})")


run_attempt = shared_task(name=TASK, bind=True, ignore_result=True)(_run_attempt)


def _worker_begins(sender: Any = None, **_: Any) -> None:
    _stopping[0] = 0
    _Process.time_limit = getattr(sender, "time_limit", None)


def _child_begins(**_: Any) -> None:
    _Process.is_child = True


def _worker_stops(**_: Any) -> None:
    _stopping[0] = 1


def _process_ends(**_: Any) -> None:
    with _Process.lock:
        stays, _Process.stays = _Process.stays, None
    if stays is not None:
        stays.__exit__(None, None, None)


signals.worker_init.connect(_worker_begins, weak=False)
signals.worker_process_init.connect(_child_begins, weak=False)
signals.worker_shutting_down.connect(_worker_stops, weak=False)
signals.worker_process_shutdown.connect(_process_ends, weak=False)
signals.worker_shutdown.connect(_process_ends, weak=False)
