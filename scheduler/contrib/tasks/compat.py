"""Compat: Django Tasks of Django 6, and its backport (django-tasks). With both, the task that arrives decides.

No model is imported here: a backend is made as soon as a module with `@task` is imported, maybe before apps are ready.
"""

import sys
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Any

OURS, BACKPORT = "django.tasks", "django_tasks"
MISSING = "scheduler.contrib.tasks needs Django 6, or its backport: pip install django-inprocess-scheduler[tasks]"


@dataclass(frozen=True, slots=True)
class Library:
    """One of the two, by what they both have."""

    name: str
    base: ModuleType
    signals: ModuleType
    exceptions: ModuleType

    @property
    def invalid_task(self) -> type[Exception]:
        """The error of a task that the backend does not take."""
        found: type[Exception] = getattr(self.exceptions, "InvalidTask", None) or self.exceptions.InvalidTaskError
        return found


@cache
def library(name: str) -> Library:
    """Return a library by its name; raises ImportError where it is not installed."""
    base, signals, exceptions = (import_module(f"{name}.{part}") for part in ("base", "signals", "exceptions"))
    return Library(name, base, signals, exceptions)


@cache
def default_library() -> Library:
    """Return Django's, else the backport; raises ImportError where there is neither."""
    for name in (OURS, BACKPORT):
        try:
            return library(name)
        except ModuleNotFoundError as error:
            if error.name not in (OURS, BACKPORT):
                raise
    raise ImportError(MISSING)


def library_of(task: object) -> Library:
    """Return the library that the class of a task is of."""
    for kind in type(task).__mro__:
        for name in (OURS, BACKPORT):
            if kind.__module__ == f"{name}.base":
                return library(name)
    return default_library()


def is_task(value: object) -> bool:
    """Return whether a value is a task of either library."""
    return any(kind.__module__ in (f"{OURS}.base", f"{BACKPORT}.base") and kind.__name__ == "Task"
               for kind in type(value).__mro__)  # fmt: skip


def no_such_result(result_id: object) -> Exception:
    """Return the error of an id that belongs to no result: it is that of each library that is in use."""
    kinds = [library(name).exceptions.TaskResultDoesNotExist for name in (OURS, BACKPORT) if name in sys.modules]
    kinds = kinds or [default_library().exceptions.TaskResultDoesNotExist]
    error: Exception = _joined(tuple(kinds))(f"There is no result {result_id!r}.")
    return error


@cache
def _joined(kinds: tuple[Any, ...]) -> Any:
    return kinds[0] if len(kinds) == 1 else type("TaskResultDoesNotExist", kinds, {})


# The handlers of both libraries only call a backend: one base class serves.
BaseTaskBackend: Any = import_module(f"{default_library().name}.backends.base").BaseTaskBackend
