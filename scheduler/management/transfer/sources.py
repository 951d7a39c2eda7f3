"""Sources: what schedules can be imported from. Each is one file, loaded when it is asked for."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

from scheduler.exceptions import InvalidOption
from scheduler.management.transfer.entry import Entry

Found = tuple[list[Entry], list[str]]
"""The schedules of a source, and what is to be known of it as a whole."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What the person who imports has said of the source."""

    file: str = ""
    database: str = "default"
    """The alias of the database that holds the tables of the other package."""
    timezone: str = ""
    """The time zone of a crontab; empty: that of the project."""
    system: bool = False
    """Whether each line of a crontab names a user."""
    unpickle: bool = False
    """Whether pickled jobs may be read."""


class Source(NamedTuple):
    """A source: what it reads, and the function that does, as `module:name`."""

    reads: str
    reader: str


FOREIGN = "scheduler.management.transfer.foreign"
SOURCES = {
    "celery": Source("CELERY_BEAT_SCHEDULE, or FILE as module:name of an app or a dict", f"{FOREIGN}.celery:read"),
    "crontab": Source("FILE of cron", f"{FOREIGN}.crontab:read"),
    "django-apscheduler": Source("its table, with --unpickle", f"{FOREIGN}.django_apscheduler:read"),
    "django-celery-beat": Source("its tables", f"{FOREIGN}.django_celery_beat:read"),
    "django-q2": Source("its table", f"{FOREIGN}.django_q2:read"),
    "export": Source("a file of export_schedules (the default)", "scheduler.management.transfer.sources:read_export"),
}


def read_source(name: str, asked: Asked) -> Found:
    """Return what a source has; raises InvalidOption when it cannot be read."""
    module, _, function = SOURCES[name].reader.partition(":")
    read: Callable[[Asked], Found] = getattr(import_module(module), function)
    return read(asked)


def read_export(asked: Asked) -> Found:
    """Read a file of `export_schedules`."""
    from scheduler.management.transfer.reading import read

    return read(text_of(asked.file))


def text_of(path: str) -> str:
    """Return the text of a file, or of standard input; raises InvalidOption."""
    if not path:
        raise InvalidOption("Say which file to import; - is standard input.")
    try:
        return sys.stdin.read() if path == "-" else Path(path).read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise InvalidOption(f"{path} cannot be read: {error}.") from error
