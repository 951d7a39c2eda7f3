"""Autodiscover: import the tasks modules of all installed apps, and remember those that fail."""

import logging
from importlib import import_module

from django.apps import apps
from django.utils.module_loading import module_has_submodule

from scheduler.conf import conf
from scheduler.registry import registry

logger = logging.getLogger("scheduler")


def autodiscover() -> None:
    """Import every `tasks` module (SCHEDULER_AUTODISCOVER_MODULES) once.

    A module that cannot be imported does not stop the project: its message is kept, and `check` warns of it. Its jobs
    are orphaned until it is mended, those above the line that fails too; the tasks of all other modules run.
    """
    for app in apps.get_app_configs():
        for name in conf.AUTODISCOVER_MODULES:
            if app.module is not None and module_has_submodule(app.module, name):
                _import(f"{app.name}.{name}")


def _import(module: str) -> None:
    try:
        with registry.all_or_nothing():
            import_module(module)
    except Exception as error:
        registry.failures[module] = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        logger.error(
            "The tasks of %s are not available: %s",
            module,
            registry.failures[module],
            extra={"action": "module_failed", "module_name": module},
            exc_info=logger.isEnabledFor(logging.DEBUG),
        )
    else:
        registry.failures.pop(module, None)
