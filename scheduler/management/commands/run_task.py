"""Run a job now and wait for it."""

import getpass
import json
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import CommandError

from scheduler.engine.base import Engine
from scheduler.engine.control import run_now
from scheduler.engine.db.shared_time import shared_now
from scheduler.engine.sync.follow_code import ensure_job
from scheduler.exceptions import InvalidOption
from scheduler.management.output import SchedulerCommand
from scheduler.models import RunLog, Status
from scheduler.runtime.foreground import run_in_foreground
from scheduler.runtime.interrupt import StopRequest
from scheduler.safetext import counted, visible
from scheduler.schedules.duration import length_words

SIGNALLED = 128
"""Plus the number of the signal: the exit code of a command that a signal ended, as shells count."""


class Command(SchedulerCommand):
    """Exit code 0: it succeeded, put itself off, or was enqueued; 1: it failed; 2: it was refused or asked for wrongly;
    130: Ctrl-C. A second Ctrl-C ends the process at once."""

    help = "Run a job now, in the foreground, or hand it to the running scheduler with --enqueue."

    def add_arguments(self, parser: ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("name", help="the job, or the task it is named after")
        parser.add_argument("--kwargs", metavar="JSON", help="keyword arguments for this run, as a JSON object")
        parser.add_argument("--enqueue", action="store_true", help="let a running scheduler do it, and do not wait")

    def run(self, **options: Any) -> None:
        name, kwargs = options["name"], _parsed(options["kwargs"])
        if options["enqueue"]:
            engine = Engine()
            ensure_job(engine, name, shared_now(engine.using))
            run = run_now(name, kwargs=kwargs, actor=_actor())
            self._say(run, options["json"], f"Run {run.pk} of {name} waits for the scheduler.")
            return
        with StopRequest() as stop:
            run = run_in_foreground(name, kwargs, actor=_actor(), stop=stop, log=self._log)
        code = _exit_code(run, stop)
        self._say(run, options["json"], "" if code else _ending(run))
        if code:
            raise CommandError(_ending(run), returncode=code)

    def _log(self, line: str) -> None:
        self.stderr.write(line, str)  # in no colour

    def _say(self, run: RunLog, as_json: bool, text: str) -> None:
        if as_json:
            self.print_json(
                {
                    "run": run.pk,
                    "job": run.job.name,
                    "status": run.status,
                    "result": run.result,
                    "reason": run.reason,
                    "error": run.error,
                    "started_at": run.started_at,
                    "finished_at": run.finished_at,
                    "totals": run.totals,
                    "errors": run.errors,
                }
            )
        elif text:
            self.stdout.write(text)


def _exit_code(run: RunLog, stop: StopRequest) -> int:
    if stop.came is not None:
        return SIGNALLED + stop.came
    if run.went_well or run.status == Status.POSTPONED:
        return 0
    return 2 if run.status == Status.SKIPPED else 1


def _ending(run: RunLog) -> str:
    """Say how a run ended: its result, its reason, or its error."""
    succeeded = run.status == Status.SUCCEEDED
    told = run.result if succeeded else visible(run.reason)
    how = run.get_status_display() + (f" with {counted(run.errors, 'error')}" if succeeded and run.errors else "")
    took = f" {'in' if succeeded else 'after'} {length_words(run.duration)}" if run.duration is not None else ""
    return f"{run.job.name} {how}{took}{': ' if told else ''}{told}\n{run.error}".rstrip()


def _parsed(text: str | None) -> dict[str, Any] | None:
    if text is None:
        return None
    try:
        kwargs = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidOption(f"--kwargs is not JSON: {error}. Write for example --kwargs '{{\"days\": 30}}'.") from error
    if not isinstance(kwargs, dict):
        raise InvalidOption("--kwargs must be a JSON object, for example '{\"days\": 30}'.")
    return kwargs


def _actor() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return ""
