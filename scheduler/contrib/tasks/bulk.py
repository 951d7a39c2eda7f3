"""Bulk: enqueue many calls of a task at once."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from scheduler.clock import SYSTEM_CLOCK

if TYPE_CHECKING:
    from scheduler.contrib.tasks.backend import Call


def enqueue_many(task: Any, calls: "Iterable[Call]") -> list[Any]:
    """Enqueue calls of a task, each a pair of its arguments and its keyword arguments; returns their results.

    A thousand are written with one statement, in the transaction of the caller. What is wrong with one of them is
    raised before any is written. The task must be one of this backend, and not unique: others raise TypeError.
    """
    from scheduler.contrib.tasks.backend import SchedulerBackend, unique_of
    from scheduler.engine.control.enqueue import enqueue_all

    backend = task.get_backend()
    if not isinstance(backend, SchedulerBackend):
        raise TypeError(f"The backend {task.backend!r} is none of the scheduler; enqueue its tasks one by one.")
    if unique_of(task) is not None:
        raise TypeError("Of a task that is unique one call waits at a time; enqueue its calls one by one.")
    task = backend.checked(task)
    waiting = backend.all_waiting(task, calls)
    if not waiting:
        return []
    rows = enqueue_all(backend.carrier(task), waiting, SYSTEM_CLOCK.now())
    return [backend.told(task, row) for row in rows]
