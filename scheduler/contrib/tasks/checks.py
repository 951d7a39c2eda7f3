"""Checks: what is wrong with the settings of a backend."""

from typing import Any

from django.apps import apps
from django.core.checks import CheckMessage, Error, Warning
from django.db import DEFAULT_DB_ALIAS

from scheduler.contrib.tasks.compat import BACKPORT, default_library
from scheduler.contrib.tasks.options import KNOWN, wrong_options


def messages(backend: Any) -> list[CheckMessage]:
    """Return what is to be said of a backend; nothing where all is well."""
    name = f"TASKS[{backend.alias!r}]"
    if not apps.is_installed("scheduler"):
        text = f"{name} needs the app “scheduler”, which is not in INSTALLED_APPS."
        return [Error(text, hint='Add "scheduler" to INSTALLED_APPS, and migrate.', id="scheduler.E050")]
    found: list[CheckMessage] = []
    if default_library().name == BACKPORT and not apps.is_installed(BACKPORT):
        text = f"{name} is used with django-tasks, whose app “{BACKPORT}” is not in INSTALLED_APPS."
        found.append(Warning(text, hint="Without it, its checks and its log are missing.", id="scheduler.W050"))
    for option, why in wrong_options(backend.options or {}):
        is_known = option in KNOWN
        text = f"{name}: {why}"
        found.append(Error(text, id="scheduler.E051") if is_known else Error(text, id="scheduler.E052"))
    if "ENQUEUE_ON_COMMIT" in backend.params:
        text = f"ENQUEUE_ON_COMMIT of {name} has no effect: a task is written in the transaction of the caller."
        found.append(Warning(text, id="scheduler.W051"))
    return found + _of_database(name)


def _of_database(name: str) -> list[CheckMessage]:
    from scheduler.engine.base import Engine

    using = Engine().using
    if using == DEFAULT_DB_ALIAS:
        return []
    text = f"The tasks of {name} are written to the database {using!r}, and not with transactions of the default one."
    return [Warning(text, hint="After a rollback there, they run all the same.", id="scheduler.W052")]
