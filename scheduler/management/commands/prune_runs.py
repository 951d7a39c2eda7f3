"""Remove what the run log need not keep any longer."""

import sys
from argparse import ArgumentParser
from dataclasses import replace
from datetime import timedelta
from typing import Any

from scheduler.clock import SYSTEM_CLOCK
from scheduler.conf import SETTINGS
from scheduler.engine.base import Engine
from scheduler.engine.control import get_job, remove_orphans
from scheduler.engine.db.shared_time import shared_now
from scheduler.engine.retention.keep import Kind, Retention
from scheduler.engine.retention.prune import Pruned, prune, surplus
from scheduler.engine.retention.prune_events import prune_events
from scheduler.exceptions import InvalidOption
from scheduler.management.output import SchedulerCommand
from scheduler.safetext import counted
from scheduler.schedules.duration import length_words

WORDS = {Kind.SUCCEEDED: "successes", Kind.FAILED: "failures", Kind.NOT_RUN: "skips, misses and cancellations"}


class Command(SchedulerCommand):
    """Exit code 0, also when there was nothing to remove; 2: it was asked for wrongly."""

    help = (
        "Remove old rows of the run log. A running scheduler does so by itself; this does it now, by the rules of the"
        " SCHEDULER_RETENTION_* settings unless told otherwise. Open runs and the newest row of each outcome stay."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument(
            "--days", type=int, metavar="N", help="remove rows older than N days, whatever their outcome"
        )
        parser.add_argument("--keep", type=int, metavar="N", help="keep the newest N rows of each job and outcome")
        parser.add_argument("--job", metavar="NAME", help="only the runs of this job")
        parser.add_argument(
            "--orphans", action="store_true", help="instead, remove jobs whose task no code registers, with their runs"
        )
        parser.add_argument("--dry-run", action="store_true", help="count the rows, remove none")

    def run(self, **options: Any) -> None:
        if options["orphans"]:
            self._orphans(dry_run=options["dry_run"], as_json=options["json"])
            return
        engine, rules = Engine(), _rules(options["days"], options["keep"])
        now = shared_now(engine.using)
        job = get_job(options["job"]) if options["job"] else None
        if options["dry_run"]:
            found = surplus(engine, now, retention=rules, job=job)
            self._say(Pruned(rows=found), dry_run=True, as_json=options["json"])
            return
        shown = sys.stderr.isatty() and not options["json"]
        began = SYSTEM_CLOCK.monotonic()
        pruned = prune(engine, now, retention=rules, job=job, on_batch=self._progress if shown else None)
        if job is None:
            prune_events(engine.using, now, rules)
        if shown:
            self.stderr.write("")
        self._say(pruned, dry_run=False, as_json=options["json"], seconds=SYSTEM_CLOCK.monotonic() - began)

    def _orphans(self, *, dry_run: bool, as_json: bool) -> None:
        names = remove_orphans(dry_run=dry_run)
        if as_json:
            self.print_json({"dry_run": dry_run, "orphans": names})
            return
        verb = "would be removed" if dry_run else "removed"
        self.stdout.write(f"{counted(len(names), 'orphan')} {verb}{': ' if names else '.'}{', '.join(names)}")

    def _progress(self, pruned: Pruned) -> None:
        self.stderr.write_over(f"{_rows(pruned.total)} removed …")
        self.stderr.flush()

    def _say(self, pruned: Pruned, *, dry_run: bool, as_json: bool, seconds: float = 0.0) -> None:
        if as_json:
            counts = {str(kind): count for kind, count in pruned.rows.items()}
            self.print_json({"dry_run": dry_run, "total": pruned.total, **counts, "batches": pruned.batches})
            return
        verb = "would be removed" if dry_run else f"removed in {length_words(timedelta(seconds=seconds))}"
        told = ", ".join(f"{pruned.rows[kind]:,} {words}" for kind, words in WORDS.items())
        self.stdout.write(f"{_rows(pruned.total)} {verb}: {told}.")


def _rows(number: int) -> str:
    return f"{number:,} {'row' if number == 1 else 'rows'}"


def _rules(days: int | None, keep: int | None) -> Retention:
    for option, value, name in (("--days", days, "DAYS"), ("--keep", keep, "RUNS")):
        setting = SETTINGS[f"SCHEDULER_RETENTION_{name}"]
        if value is not None and not setting.rule(value):
            raise InvalidOption(f"{option} is {value}; it must be {setting.must}.")
    rules = Retention.from_settings()
    if days is not None:
        rules = replace(rules, days=days, failed_days=days)
    return rules if keep is None else replace(rules, runs=keep)
