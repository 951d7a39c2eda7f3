"""The backends of TASKS, as the framework knows them, and which of them can take a run."""

from importlib import import_module
from importlib.util import find_spec
from typing import Any

import django
from django.conf import settings

from scheduler.exceptions import ConfigurationError

DEFAULT = "default"
LIBRARY = "django.tasks" if django.VERSION >= (6,) else "django_tasks"
"""Django's own; its backport where Django has none."""
INSTALL = 'pip install "django-inprocess-scheduler[tasks]"'
NO_WORKER = {
    "ImmediateBackend": "calls at once in the process that hands over, which must call nothing",
    "DummyBackend": "never calls what it is given",
    "SchedulerBackend": "hands its tasks to this scheduler, which would hand them over again",
}
"""Classes of backends without workers of their own, by name: what each does instead."""


def is_installed() -> bool:
    """Return whether there is a task framework."""
    return find_spec(LIBRARY) is not None


def backend_named(alias: str) -> Any:
    """Return a backend of TASKS; raises ConfigurationError where it is unknown, or can hand nothing over."""
    if not is_installed():
        raise ConfigurationError(f"Django {django.get_version()} needs django-tasks for this: {INSTALL}.")
    known = getattr(settings, "TASKS", {})
    if alias not in known:
        names = ", ".join(map(repr, known)) or "none"
        raise ConfigurationError(f"TASKS has no backend {alias!r}; it has {names}.")
    backend = import_module(LIBRARY).task_backends[alias]
    for kind in type(backend).__mro__:
        if (why := NO_WORKER.get(kind.__name__)) is not None:
            raise ConfigurationError(f"The backend {alias!r} of TASKS cannot take runs: {kind.__name__} {why}.")
    return backend


def queue_of(backend: Any) -> str:
    """Return the queue of what names none: “default”, or the first by name where TASKS knows others only."""
    return DEFAULT if not backend.queues or DEFAULT in backend.queues else min(backend.queues)
