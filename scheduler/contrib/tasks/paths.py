"""Paths: find the task that a dotted path names, and refuse what no other process could find."""

from typing import Any

from django.utils.module_loading import import_string

from scheduler.contrib.tasks.compat import is_task, library_of

_found: dict[str, Any] = {}
"""Of each path the task that it names, once that has been imported in this process."""


def task_at(path: str) -> Any:
    """Return the task that a path names; raises ImportError where there is none."""
    task = _found.get(path)
    if task is None:
        task = import_string(path)
        if not is_task(task):
            raise ImportError(f"{path!r} is no task.")
        _found[path] = task
    return task


def is_known(path: str) -> bool:
    """Return whether this process has found the task of a path before."""
    return path in _found


def refuse_unreachable(task: Any) -> None:
    """Raise InvalidTask for a task that another process could not import by its path."""
    path = task.module_path
    if path in _found and _found[path].func is task.func:
        return
    why = ""
    _found.pop(path, None)
    try:
        if task.func.__module__ == "__main__":
            why = "it is defined in __main__"
        elif task_at(path).func is not task.func:
            why = "the path names another task"
    except Exception as error:
        why = f"{type(error).__name__}: {error}"
    if why:
        raise library_of(task).invalid_task(f"No other process can import the task {path!r}: {why}.")
