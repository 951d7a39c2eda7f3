"""What the commands print: aligned tables cut to the terminal, or JSON."""

import json
import shutil
import sys
from argparse import ArgumentParser
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any, Literal, cast
from zoneinfo import ZoneInfo

from django.core.management.base import BaseCommand, CommandError, OutputWrapper
from django.db import DatabaseError, InterfaceError, OperationalError

from scheduler.engine.base import Engine
from scheduler.engine.db.migrated import MUST_MIGRATE, awaits_migration
from scheduler.engine.views.datetimes import local
from scheduler.exceptions import SchedulerError
from scheduler.safetext import masked, visible
from scheduler.schedules.duration import length_words
from scheduler.schedules.instants import instant_text

GAP = "  "


class VisibleOutput(OutputWrapper):
    """What a command writes to: control and bidi characters in what is stored are shown, never obeyed.

    A log line, a result, the reason of a pause or the name of a user may hold the escapes that clear a screen, set the
    clipboard, or write a line that was never there.
    """

    def write(  # type: ignore[override]
        self, msg: str = "", style_func: Callable[[str], str] | None = None, ending: str | None = None
    ) -> None:
        """Write a text of one line or several; a style belongs into `style_func`."""
        super().write(visible(msg, lines=True), style_func, ending)

    def write_over(self, msg: str) -> None:
        """Write a line of our own over the one before: the progress of the command."""
        super().write(f"\r{visible(msg)}", ending="")


class _Stream:
    """An attribute of a command that holds an output, wherever it is set: Django sets it in two places."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = f"_{name}"

    def __get__(self, command: Any, owner: type | None = None) -> VisibleOutput:
        found: VisibleOutput = getattr(command, self._name)
        return found

    def __set__(self, command: Any, output: OutputWrapper) -> None:
        setattr(command, self._name, VisibleOutput(cast(Any, output)._out, output.ending))


class SchedulerCommand(BaseCommand):
    """A command with `--json`, whose errors are one clear line and exit code 2."""

    stdout = _Stream()
    stderr = _Stream()

    requires_migrations_checks = False
    requires_system_checks: list[str] | tuple[str, ...] | Literal["__all__"] = ()
    """They look at the scheduler, also when something is wrong with the project: then most of all."""

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--json", action="store_true", help="print JSON for programs instead of text for people")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            self.run(**options)
        except SchedulerError as error:
            raise CommandError(str(error), returncode=2) from error
        except DatabaseError as error:
            if awaits_migration(Engine().using):
                raise CommandError(f"{MUST_MIGRATE[0].upper()}{MUST_MIGRATE[1:]}.", returncode=2) from error
            if isinstance(error, OperationalError | InterfaceError):
                raise CommandError(f"The database does not answer: {masked(_one_line(error))}", returncode=2) from error
            raise

    def run(self, **options: Any) -> None:
        """Do what the command is for."""
        raise NotImplementedError

    def print_json(self, data: Any) -> None:
        """Print data as JSON; instants in UTC, as RFC 3339 says."""
        self.stdout.write(json.dumps(data, indent=2, ensure_ascii=False, default=_for_json))

    def print_table(self, heads: Sequence[str], rows: Sequence[Sequence[Any]], *, empty: str) -> None:
        """Print rows under their heads; the last column is cut at the edge of the terminal."""
        if not rows:
            self.stdout.write(empty)
            return
        for line in table_lines(heads, rows, width=_terminal_width()):
            self.stdout.write(line)


def table_lines(heads: Sequence[str], rows: Sequence[Sequence[Any]], *, width: int | None) -> list[str]:
    """Return the lines of an aligned table, none longer than `width` characters (None: as long as they are)."""
    cells = [list(heads), *([_one_line(cell) for cell in row] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = (GAP.join(cell.ljust(size) for cell, size in zip(row, widths, strict=True)).rstrip() for row in cells)
    return [line if width is None or len(line) <= width else line[: width - 1] + "…" for line in lines]


def moment(at: datetime | None, zone: ZoneInfo | None = None) -> str:
    """Return an instant in a time zone, by default the project's, the zone named."""
    if at is None:
        return "-"
    clock = local(at, zone)
    return f"{clock:%Y-%m-%d %H:%M:%S} {clock:%Z}"


def relative(at: datetime | None, now: datetime) -> str:
    """Return “in 3 min” or “2 h ago”."""
    if at is None:
        return "-"
    if abs(at - now) < timedelta(seconds=1):
        return "now"
    return f"in {length_words(at - now)}" if at > now else f"{length_words(now - at)} ago"


def _for_json(value: Any) -> str:
    return instant_text(value) if isinstance(value, datetime) else str(value)


def _one_line(cell: Any) -> str:
    return visible(" ".join(str(cell).split())) if cell not in (None, "") else "-"


def _terminal_width() -> int | None:
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None
