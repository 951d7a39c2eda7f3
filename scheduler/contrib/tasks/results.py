"""Results: what the attempts of a task in the ledger come to."""

from collections.abc import Sequence
from dataclasses import fields
from datetime import datetime
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.utils import timezone

from scheduler.contrib.tasks.compat import Library
from scheduler.contrib.tasks.errors import TaskCancelled, TaskLost

if TYPE_CHECKING:
    from scheduler.models import RunLog

LONGEST_WORKER = 64
FINAL = {"succeeded": "SUCCESSFUL", "pending": "READY", "postponed": "READY", "running": "RUNNING"}
"""The statuses of results by those of the ledger; all others have failed."""
BEGUN = ("running", "succeeded", "failed", "timed_out", "lost", "postponed")
CLASSES = {"timed_out": "builtins.TimeoutError", "lost": f"{TaskLost.__module__}.{TaskLost.__qualname__}"}
NO_CLASS = "builtins.Exception"
"""Of a failure of which only the text is known."""
CANCELLED = f"{TaskCancelled.__module__}.{TaskCancelled.__qualname__}"


def result_of(library: Library, task: Any, rows: Sequence["RunLog"]) -> Any:
    """Return the result that the attempts of one slot come to, the oldest first. `task` is as it was enqueued."""
    from scheduler.models.result_ids import id_of  # not before the apps are ready

    newest = rows[-1]
    status = _status(newest)
    envelope = newest.kwargs
    begun = [row for row in rows if _has_begun(row)]
    result = library.base.TaskResult(
        task=task,
        id=id_of(newest.job_id, newest.scheduled_for),
        status=library.base.TaskResultStatus[status],
        enqueued_at=told(newest.scheduled_for),
        started_at=told(begun[0].started_at) if begun else None,
        last_attempted_at=told(begun[-1].started_at) if begun else None,
        finished_at=told(newest.finished_at) if status in ("SUCCESSFUL", "FAILED") else None,
        args=envelope["args"],
        kwargs=envelope["kwargs"],
        backend=envelope["backend"],
        errors=[error for row in rows if (error := _error(library, row, is_last=row is newest))],
        worker_ids=_workers(newest, begun),
    )
    if status == "SUCCESSFUL":
        object.__setattr__(result, "_return_value", newest.return_value)
    return result


def task_as_enqueued(task: Any, envelope: dict[str, Any]) -> Any:
    """Return a task with what `using()` had said of it; not validated, since settings may have changed since."""
    run_after = envelope["run_after"]
    own = {
        "priority": envelope["priority"],
        "queue_name": envelope["queue"],
        "backend": envelope["backend"],
        "run_after": None if run_after is None else datetime.fromisoformat(run_after),
        "unique": envelope.get("unique"),
    }
    copied = object.__new__(type(task))
    for one in fields(task):
        object.__setattr__(copied, one.name, own.get(one.name, getattr(task, one.name)))
    return copied


def told(at: datetime | None) -> datetime | None:
    """Return an instant as Django has it: naive, in the time zone of the project, without USE_TZ."""
    return at if at is None or settings.USE_TZ else timezone.make_naive(at, timezone.get_default_timezone())


def _status(row: "RunLog") -> str:
    if row.status == "timed_out" and row.due_at is not None:
        return "RUNNING"
    return FINAL.get(row.status, "FAILED")


def _has_begun(row: "RunLog") -> bool:
    return row.status in BEGUN or row.started_at is not None


def _workers(newest: "RunLog", begun: list["RunLog"]) -> list[str]:
    """Return a name for each attempt that has begun; an empty one for those that retention has removed."""
    known = [row.worker[:LONGEST_WORKER] for row in begun]
    count = newest.attempt if _has_begun(newest) else newest.attempt - 1
    return [""] * max(0, count - len(known)) + known


def _error(library: Library, row: "RunLog", *, is_last: bool) -> Any:
    """Return what an attempt ended with; None where it is no error, or goes on."""
    if row.due_at is not None or row.status in FINAL:
        return None
    path = row.error_class or NO_CLASS if row.status == "failed" else CLASSES.get(row.status, "")
    if not path and not is_last:
        return None
    text = row.error or row.reason or f"The attempt is {row.status}."
    return library.base.TaskError(
        exception_class_path=path or CANCELLED, traceback=text if text.endswith("\n") else f"{text}\n"
    )
