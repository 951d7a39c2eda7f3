"""Telling: the signals of Django Tasks, of the library that a task is of. No receiver can break an enqueue or a run."""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from django.core.signals import setting_changed
from django.dispatch import receiver

from scheduler.contrib.tasks.compat import Library, library_of
from scheduler.contrib.tasks.errors import TaskCancelled, TaskLost

SAID = ("task", "priority", "queue", "backend")
"""What all calls of a task have in common that say nothing of their own."""
MOST_KNOWN = 1000
"""Queues may have any name."""


class Teller(NamedTuple):
    """What the receivers hear of one call of a task is told with."""

    library: Library
    task: Any
    sender: type
    """The class of the backend; that of this package where the alias is gone."""
    options: Mapping[str, Any]
    """Those of the backend."""


_common: dict[tuple[Any, ...], tuple[Any, Teller]] = {}
"""By what calls have in common, the task that their path named, and what is told of each of them with."""


def teller_of(run: Any) -> Teller:
    """Return what is told of an attempt with; raises ImportError where its task is gone."""
    from scheduler.contrib.tasks.paths import task_at

    envelope = run.kwargs
    named = task_at(envelope["task"])
    if envelope["run_after"] is not None or "unique" in envelope:
        return _teller(named, envelope)
    said = tuple(map(envelope.get, SAID))
    known, teller = _common.get(said, (None, None))
    if teller is None or known is not named:
        teller = _teller(named, envelope)
        if len(_common) >= MOST_KNOWN:
            _common.clear()
        _common[said] = named, teller
    return teller


@receiver(setting_changed)
def _forget_settings(*, setting: str, **kwargs: object) -> None:
    """Ask the settings again, as Django Tasks does (tests change them)."""
    if setting == "TASKS":
        _common.clear()


def _teller(named: Any, envelope: dict[str, Any]) -> Teller:
    from scheduler.contrib.tasks.backend import SchedulerBackend
    from scheduler.contrib.tasks.results import task_as_enqueued

    task = task_as_enqueued(named, envelope)
    sender: type = SchedulerBackend
    options: Mapping[str, Any] = {}
    with suppress(Exception):
        backend = task.get_backend()
        sender, options = type(backend), backend.options or {}
    return Teller(library_of(task), task, sender, options)


def tell(library: Library, signal: str, sender: type, result: Any) -> None:
    """Send `task_enqueued`, `task_started` or `task_finished`."""
    getattr(library.signals, signal).send_robust(sender, task_result=result)


async def tell_from_loop(library: Library, signal: str, sender: type, result: Any) -> None:
    """As `tell`, from the event loop: receivers may block, or use the database."""
    await getattr(library.signals, signal).asend_robust(sender, task_result=result)


def result_of_attempt(run: Any) -> Any:
    """Return the result of the task of an attempt, as that stands."""
    return _result(run, teller_of(run))


def _result(run: Any, teller: Teller) -> Any:
    from scheduler.contrib.tasks.ledger import attempts_up_to
    from scheduler.contrib.tasks.results import result_of

    return result_of(teller.library, teller.task, attempts_up_to(run))


def tell_end(run: Any) -> None:
    """Tell of the end of a task after which no further attempt follows, once that is committed."""
    teller = run.teller or teller_of(run)  # none where it ran in another process
    library, sender, result = teller.library, teller.sender, _result(run, teller)
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
