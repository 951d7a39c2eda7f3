"""System checks of the hand-over to Django Tasks. None of them connects to anything."""

from collections.abc import Iterator
from typing import Any

from django.core.checks import CheckMessage, Error, Warning

from scheduler.contrib.django_tasks.backends import DEFAULT, INSTALL, backend_named, is_installed
from scheduler.exceptions import ConfigurationError
from scheduler.registry import registry

WAIT = "until then its runs wait"


def check_django_tasks(app_configs: Any, **_: Any) -> list[CheckMessage]:
    """E032: no task framework. W032: a backend that can take no runs. W033: an unknown queue, or no priorities."""
    if not is_installed():
        text = "scheduler.contrib.django_tasks is installed, and this Django has no task framework."
        return [Error(text, hint=f"{INSTALL}; until then runs to be handed over wait.", id="scheduler.E032")]
    handed = [task for task in registry if task.policy.executor == "django_tasks"]
    return [warning for task in handed for warning in _warnings_of(task.name, task.policy.executor_options.values)]


def _warnings_of(name: str, options: dict[str, Any]) -> Iterator[CheckMessage]:
    alias = options.get("backend", DEFAULT)
    try:
        backend = backend_named(alias)
    except ConfigurationError as error:
        hint = f"Name another backend in executor_options of {name!r}, or correct TASKS; {WAIT}."
        yield Warning(str(error), hint=hint, id="scheduler.W032")
        return
    queue = options.get("queue")
    if queue and backend.queues and queue not in backend.queues:
        text = f"{name!r} names the queue {queue!r}, which the backend {alias!r} does not know."
        yield Warning(text, hint=f"Add it to QUEUES of TASKS, or correct the name; {WAIT}.", id="scheduler.W033")
    if options.get("priority") and not backend.supports_priority:
        text = f"{name!r} names a priority, and the backend {alias!r} knows none."
        yield Warning(text, hint="Leave it out of executor_options; it has no effect.", id="scheduler.W033")
