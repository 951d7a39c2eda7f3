"""Autodiscover: import the tasks modules of all installed apps, and remember those that fail."""

import logging
import sys
from collections.abc import Iterator
from contextlib import suppress
from importlib import import_module
from importlib.metadata import packages_distributions
from importlib.util import find_spec
from pathlib import Path
from traceback import walk_tb
from typing import Any

from django.apps import apps
from django.conf import settings
from django.utils.module_loading import module_has_submodule

from scheduler.conf import conf
from scheduler.places import place_of
from scheduler.registry import registry
from scheduler.safetext import told, visible

logger = logging.getLogger("scheduler")

INSTALLED = {"site-packages", "dist-packages"}
"""Folders of what is installed for a project, not written in it."""

LONGEST_ERROR = 2000
"""Characters of what an import says went wrong."""

LISTING_COMMANDS = ("check", "list_tasks")
"""Commands that list the modules that failed."""

_failed_files: set[Path] = set()


def autodiscover() -> None:
    """Import every `tasks` module (SCHEDULER_AUTODISCOVER_MODULES) once.

    A module that cannot be imported does not stop the project: its message is kept, and `check` warns of it. Its jobs
    are orphaned until it is fixed, those above the line that fails too; the tasks of all other modules run.
    """
    left_out = set(conf.AUTODISCOVER_EXCLUDE)
    for app in apps.get_app_configs():
        for name in conf.AUTODISCOVER_MODULES:
            module = f"{app.name}.{name}"
            if left_out.isdisjoint((app.name, module)) and app.module and module_has_submodule(app.module, name):
                _import(module)


def is_of_project(module: str) -> bool:
    """Whether a tasks module is of an app of the project itself, not of one that was installed beside it.

    A project may be installed as well, from a wheel of its own: what comes with its settings or URLs is its own.
    """
    app = apps.get_containing_app_config(module)
    return app is None or not _is_installed(app.path) or _comes_with_the_project(module.partition(".")[0])


def _comes_with_the_project(package: str) -> bool:
    named = (getattr(settings, "SETTINGS_MODULE", None), getattr(settings, "ROOT_URLCONF", None))
    own = {str(one).partition(".")[0] for one in named if one}
    if package in own:
        return True
    installed = packages_distributions()
    wheels = {wheel for one in own if _is_from_a_wheel(one) for wheel in installed.get(one, ())}
    return not wheels.isdisjoint(installed.get(package, ()))


def _is_from_a_wheel(package: str) -> bool:
    """Whether it is imported from what is installed: a wheel may bring a package of the same name, such as `config`."""
    spec = find_spec(package)
    places = [spec.origin, *(spec.submodule_search_locations or ())] if spec else []
    return any(_is_installed(place) for place in places if place)


def _is_installed(path: str) -> bool:
    return not INSTALLED.isdisjoint(Path(path).parts)


def watch_failed(sender: Any, **sent: Any) -> None:
    """Let the reloader of `runserver` watch the files of modules that failed, which `sys.modules` does not have."""
    sender.extra_files.update(_failed_files)


def _import(module: str) -> None:
    try:
        with registry.all_or_nothing():
            import_module(module)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # also sys.exit, which would end every command
        registry.failures[module] = _told(error, module)
        with suppress(Exception):  # its package cannot be imported either: there is no file to watch
            _failed_files.update(_files_of(error, module))
        logger.log(
            _level(module),
            "The tasks of %s are not available: %s",
            module,
            registry.failures[module],
            extra={"action": "module_failed", "module_name": module},
            exc_info=logger.isEnabledFor(logging.DEBUG),
        )
    else:
        registry.failures.pop(module, None)


def _level(module: str) -> int:
    """The level of a failure in the log; low where the command itself lists it, so that it is not told twice."""
    if sys.argv[1:2] and sys.argv[1] in LISTING_COMMANDS:
        return logging.DEBUG
    return logging.ERROR if is_of_project(module) else logging.WARNING


def _told(error: BaseException, module: str) -> str:
    """Say what went wrong, and where in the module."""
    text = visible(told(error, LONGEST_ERROR))
    words = f"{type(error).__name__}: {text}" if text else type(error).__name__
    place = place_of(error, module)
    return f"{words} ({place})" if place else words


def _files_of(error: BaseException, module: str) -> Iterator[Path]:
    """The files in which an import failed: that of the module, and those it imports on the way to the error."""
    spec = find_spec(module)
    names = [spec.origin if spec and spec.has_location else None, getattr(error, "filename", None)]
    names += [frame.f_code.co_filename for frame, _line in walk_tb(error.__traceback__)]
    for name in names:
        if isinstance(name, str) and (path := Path(name)).suffix == ".py" and path.is_file():
            yield path.resolve()
