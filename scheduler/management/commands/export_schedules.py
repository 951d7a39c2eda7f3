"""Write jobs to a file that `import_schedules` reads."""

import json
import os
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from scheduler.engine.base import Engine
from scheduler.engine.control import get_job, list_jobs
from scheduler.engine.db.shared_time import shared_now
from scheduler.engine.views.pauses import paused_groups
from scheduler.exceptions import InvalidOption
from scheduler.management.output import SchedulerCommand
from scheduler.management.transfer.document import exported
from scheduler.safetext import counted

OWN = 0o600
"""A file that only its owner reads: keyword arguments may hold secrets."""


class Command(SchedulerCommand):
    """Exit code 2: a job is not there or cannot be read, or the file cannot be written. Runs, counters and the kept
    state of jobs stay behind."""

    help = "Write the jobs, or those named, as JSON that import_schedules reads. Keyword arguments are part of it."

    def add_arguments(self, parser: ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("names", nargs="*", metavar="NAME", help="only these jobs")
        parser.add_argument("--output", metavar="FILE", help="write to this file, which only its owner can read")
        parser.add_argument("--people", action="store_true", help="only jobs that people made, none of the code")

    def run(self, **options: Any) -> None:
        jobs = [get_job(name) for name in dict.fromkeys(options["names"])] or list_jobs()
        if options["people"]:
            jobs = [job for job in jobs if not job.source]
        document = exported(jobs, list(paused_groups().values()), shared_now(Engine().using))
        if options["output"] is None:
            self.print_json(document)
            return
        _write(options["output"], json.dumps(document, indent=2, ensure_ascii=False) + "\n")
        self._say(options["output"], len(jobs), options["json"])

    def _say(self, path: str, count: int, as_json: bool) -> None:
        if as_json:
            self.print_json({"output": path, "jobs": count})
        else:
            self.stdout.write(f"{counted(count, 'job')} written to {path}.")


def _write(path: str, text: str) -> None:
    """Write a file whole or not at all."""
    target = Path(path)
    beside = target.with_name(f"{target.name}.part")
    try:
        beside.unlink(missing_ok=True)
        with os.fdopen(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, OWN), "w", encoding="utf-8") as file:
            file.write(text)
        beside.replace(target)
    except OSError as error:
        raise InvalidOption(f"--output {path} cannot be written: {error.strerror or error}.") from error
