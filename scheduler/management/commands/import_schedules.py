"""Bring schedules into this database: an export of this scheduler, or what another one has."""

from argparse import ArgumentParser
from dataclasses import fields
from typing import Any

from django.core.management.base import CommandError

from scheduler.management.output import SchedulerCommand
from scheduler.management.transfer.report import as_data, as_lines
from scheduler.management.transfer.sources import SOURCES, Asked, read_source
from scheduler.management.transfer.tasks import TaskNames
from scheduler.management.transfer.writer import Writer, counted


class Command(SchedulerCommand):
    """Exit code 0, also when schedules were refused; 1 with `--strict`, when one was; 2: it was asked for wrongly."""

    help = "Import schedules. Without --apply nothing is written, and the report says what would be."

    def add_arguments(self, parser: ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("file", nargs="?", default="", metavar="FILE", help="what to read; - is standard input")
        parser.add_argument("--from", dest="source", choices=sorted(SOURCES), default="export", help=_what_it_reads())
        writes = parser.add_mutually_exclusive_group()
        writes.add_argument("--apply", action="store_true", help="write what the report says")
        writes.add_argument("--dry-run", action="store_true", help="write nothing, which is the default")
        parser.add_argument("--replace", action="store_true", help="replace jobs that are here and differ")
        parser.add_argument("--tasks", metavar="FILE", help="a JSON object: the name of a task there and its name here")
        parser.add_argument(
            "--database", default="default", metavar="ALIAS", help="where the tables of the other package are"
        )
        parser.add_argument("--timezone", default="", metavar="ZONE", help="the time zone of a crontab (TIME_ZONE)")
        parser.add_argument("--system", action="store_true", help="lines of the crontab name a user, as in /etc/cron.d")
        parser.add_argument(
            "--unpickle", action="store_true", help="read the pickled jobs of APScheduler; none of their code is called"
        )
        parser.add_argument("--strict", action="store_true", help="exit with 1 when a schedule was refused")

    def run(self, **options: Any) -> None:
        source = options["source"]
        tasks = TaskNames.of_file(options["tasks"])
        asked = {field.name: options[field.name] for field in fields(Asked)}
        entries, notes = read_source(source, Asked(**asked))
        actor = "import" if source == "export" else f"import from {source}"
        writer = Writer(tasks=tasks, actor=actor, apply=options["apply"], replace=options["replace"])
        results = writer.import_all(entries)
        if options["json"]:
            self.print_json(as_data(results, notes, source=source, applied=options["apply"]))
        else:
            for line in as_lines(results, notes, applied=options["apply"]):
                self.stdout.write(line)
        refused = counted(results)["refused"]
        if refused and options["strict"]:
            raise CommandError(f"Schedules that were refused: {refused}.", returncode=1)


def _what_it_reads() -> str:
    return "; ".join(f"{name}: {one.reads}" for name, one in sorted(SOURCES.items()))
