"""Slots: each is decided once, none is left out. I1, I3, I8."""

from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import pairwise

from tests.faults.evidence import Evidence, JobRow, Row
from tests.faults.jobs import in_crowd

from .base import Violation, rows_by_job

Span = tuple[datetime, datetime, int]


def unique_rows(evidence: Evidence) -> Iterator[Violation]:
    """I1: one (job, slot, attempt), at most one row."""
    for key, count in Counter(row.key for row in evidence.last.rows).items():
        if count > 1:
            yield Violation("I1", f"{count} rows of {key}")


def every_slot_decided(evidence: Evidence) -> Iterator[Violation]:
    """I3: by the grid of each job, every slot is on exactly one row, up to the one that is planned next."""
    if evidence.clock_moved:
        return  # intervals begin a new grid after the clock was set back
    rows = rows_by_job(evidence)
    for job in evidence.last.jobs:
        spec = evidence.specs.get(job.name)
        if spec is not None and spec.has_grid and job.name not in evidence.off_plan:
            spans = sorted(_spans(rows.get(job.name, [])))
            if job.anchor_at is not None and not spec.cron:  # a cron grid is older than its job
                spans.insert(0, (job.anchor_at, job.anchor_at, 0))
            yield from _follow_grid(job, spans, timedelta(seconds=spec.interval or 0))


def _follow_grid(job: JobRow, spans: list[Span], step: timedelta) -> Iterator[Violation]:
    if not spans:
        yield Violation("I3", f"{job.name} has neither an anchor nor a run")
        return
    for (_, last, _), (first, newest, count) in pairwise(spans):
        if first != last + step:
            word = "twice" if first <= last else "by no row"
            yield Violation("I3", f"{job.name}: between {last} and {first} a slot is decided {word}")
        if newest != first + (count - 1) * step:
            yield Violation("I3", f"{job.name}: a row counts {count} slots from {first} to {newest}")
    planned = job.next_run_at
    if planned is not None and planned != spans[-1][1] + step:
        yield Violation("I3", f"{job.name}: the last slot decided is {spans[-1][1]}, the next planned {planned}")


def _spans(rows: list[Row]) -> list[Span]:
    """Return the slots that rows stand for: oldest, newest, how many. Further attempts stand for no further slot."""
    first_attempts = {row.slot: row for row in reversed(rows)}
    return [(row.coalesced_from or row.slot, row.slot, row.coalesced + 1) for row in first_attempts.values()]


def crowd_runs_once(evidence: Evidence) -> Iterator[Violation]:
    """I3: of very many jobs that are due at one instant, each has run once."""
    succeeded = Counter(row.job for row in evidence.last.rows if row.status == "succeeded")
    for job in evidence.last.jobs:
        if in_crowd(job.name) and succeeded[job.name] != 1:
            yield Violation("I3", f"{job.name}, due once, succeeded {succeeded[job.name]} times")


def next_is_later(evidence: Evidence) -> Iterator[Violation]:
    """I8: the next slot is later than every slot in the ledger."""
    if evidence.clock_moved:
        return
    rows = rows_by_job(evidence)
    for job in evidence.last.jobs:
        taken = rows.get(job.name, [])
        if taken and job.next_run_at is not None and job.next_run_at <= taken[-1].slot:
            yield Violation("I8", f"{job.name}: next {job.next_run_at}, but {taken[-1].slot} is taken")
