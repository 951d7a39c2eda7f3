"""Run a job now and wait for it."""

import getpass
import json
import logging
import sys
from argparse import ArgumentParser
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.core.management.base import CommandError

from scheduler.context import current_run
from scheduler.engine.control import run_now
from scheduler.exceptions import InvalidOption
from scheduler.management.output import SchedulerCommand, span
from scheduler.models import RunLog, Status
from scheduler.runtime.foreground import run_in_foreground


class Command(SchedulerCommand):
    """Exit code 0: it succeeded (or was enqueued); 1: it failed; 2: it was refused or asked for wrongly."""

    help = "Run a job now, in the foreground, or hand it to the running scheduler with --enqueue."

    def add_arguments(self, parser: ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("name", help="the job, or the task it is named after")
        parser.add_argument("--kwargs", metavar="JSON", help="keyword arguments for this run, as a JSON object")
        parser.add_argument("--enqueue", action="store_true", help="let a running scheduler do it, and do not wait")

    def run(self, **options: Any) -> None:
        kwargs = _parsed(options["kwargs"])
        if options["enqueue"]:
            run = run_now(options["name"], kwargs=kwargs, actor=_actor())
            self._say(run, options["json"], f"Run {run.pk} of {options['name']} waits for the scheduler.")
            return
        with _log_on(sys.stderr):
            run = run_in_foreground(options["name"], kwargs, actor=_actor())
        took = span(run.duration)
        if run.status == Status.SUCCEEDED:
            result = f": {run.result}" if run.result else ""
            self._say(run, options["json"], f"{run.job.name} succeeded in {took}{result}")
            return
        self._say(run, options["json"], "")
        raise CommandError(
            f"{run.job.name} {run.get_status_display()} after {took}.\n{run.error}".rstrip(), returncode=1
        )

    def _say(self, run: RunLog, as_json: bool, text: str) -> None:
        if as_json:
            self.print_json(
                {
                    "run": run.pk,
                    "job": run.job.name,
                    "status": run.status,
                    "result": run.result,
                    "error": run.error,
                    "started_at": run.started_at,
                    "finished_at": run.finished_at,
                    "totals": run.totals,
                }
            )
        elif text:
            self.stdout.write(text)


def _parsed(text: str | None) -> dict[str, Any] | None:
    if text is None:
        return None
    try:
        kwargs = json.loads(text)
    except ValueError as error:
        raise InvalidOption(f"--kwargs is not JSON: {error}. Write for example --kwargs '{{\"days\": 30}}'.") from error
    if not isinstance(kwargs, dict):
        raise InvalidOption("--kwargs must be a JSON object, for example '{\"days\": 30}'.")
    return kwargs


def _actor() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return ""


@contextmanager
def _log_on(stream: Any) -> Iterator[None]:
    """Show the log of the run while it goes on."""
    handler = logging.StreamHandler(stream)
    handler.addFilter(lambda record: current_run() is not None)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    logging.getLogger().addHandler(handler)
    try:
        yield
    finally:
        logging.getLogger().removeHandler(handler)
