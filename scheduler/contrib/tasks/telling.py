"""Telling: the signals of Django Tasks, of the library that a task is of. No receiver can break an enqueue or a run."""

from contextlib import suppress
from typing import Any

from scheduler.contrib.tasks.compat import Library, library_of
from scheduler.contrib.tasks.errors import TaskCancelled, TaskLost


def sender_of(task: Any) -> type:
    """Return the class of the backend of a task; that of this package where the alias is gone."""
    with suppress(Exception):
        return type(task.get_backend())
    from scheduler.contrib.tasks.backend import SchedulerBackend

    return SchedulerBackend


def tell(library: Library, signal: str, sender: type, result: Any) -> None:
    """Send `task_enqueued`, `task_started` or `task_finished`."""
    getattr(library.signals, signal).send_robust(sender, task_result=result)


async def tell_from_loop(library: Library, signal: str, sender: type, result: Any) -> None:
    """As `tell`, from the event loop: receivers may block, or use the database."""
    await getattr(library.signals, signal).asend_robust(sender, task_result=result)


def result_of_attempt(run: Any) -> Any:
    """Return the result of the task of an attempt, as that stands."""
    from scheduler.contrib.tasks.ledger import attempts_up_to
    from scheduler.contrib.tasks.paths import task_at
    from scheduler.contrib.tasks.results import result_of, task_as_enqueued

    task = task_as_enqueued(task_at(run.kwargs["task"]), run.kwargs)
    return result_of(library_of(task), task, attempts_up_to(run))


def tell_end(run: Any) -> None:
    """Tell of the end of a task after which no further attempt follows, once that is committed."""
    result = result_of_attempt(run)
    library, sender = library_of(result.task), sender_of(result.task)
    if result.status.value != "FAILED":
        tell(library, "task_finished", sender, result)
        return
    try:
        raise _error_of(run)  # the log of Django Tasks shows the error that is being handled
    except BaseException:
        tell(library, "task_finished", sender, result)


def _error_of(run: Any) -> BaseException:
    """Return what a task ended with: what it raised here, else what its result tells."""
    if run.status == "failed" and run.exception is not None:
        raised: BaseException = run.exception
        return raised
    kinds: dict[str, type[Exception]] = {"failed": Exception, "timed_out": TimeoutError, "lost": TaskLost}
    return kinds.get(run.status, TaskCancelled)(run.error or run.reason or f"The task is {run.status}.")
