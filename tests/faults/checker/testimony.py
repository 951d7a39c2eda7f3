"""Testimony: journal and ledger tell the same story, and no start in it is early. I4, I19."""

from collections import Counter
from collections.abc import Iterator

from tests.faults.evidence import Evidence, Line, Row
from tests.faults.jobs import in_crowd

from .base import Violation, starts, was_out

NEVER_STARTED = ("skipped", "missed", "pending")
SETTLED = 5.0
"""Seconds in which runs that were claimed before the clock was set may still start."""


def not_early(evidence: Evidence) -> Iterator[Violation]:
    """I4: nothing starts before its slot, by the clock of the database."""
    for line in starts(evidence):
        if line.slot is not None and line.wall + evidence.early < line.slot.timestamp():
            early = line.slot.timestamp() - line.wall
            yield Violation("I4", f"{line.job} {line.slot} started {early:.3f} s early in {line.runner}")


def not_early_by_its_own_clock(evidence: Evidence) -> Iterator[Violation]:
    """I4: where the clock that counts was set, nothing starts before its slot by the clock that its process saw.

    A further attempt of a slot of the wrong time does; and what was claimed before the clock was set, or before the
    process stood still.
    """
    for line in starts(evidence) if evidence.steps else ():
        settled = all(not 0 <= line.mono - step < SETTLED for step in evidence.steps)
        settled = settled and not was_out(evidence, line.runner, line.mono - SETTLED, line.mono)
        if line.slot and line.attempt == 1 and settled and line.seen < line.slot.timestamp():
            early = line.slot.timestamp() - line.seen
            yield Violation("I4", f"{line.job} {line.slot} started {early:.3f} s early by the clock of {line.runner}")


def agrees(evidence: Evidence) -> Iterator[Violation]:
    """I19: every start has a row with its token, every run in the ledger its lines in the journal."""
    rows = {row.key: row for row in evidence.last.rows}
    began = Counter((line.job, line.token) for line in starts(evidence))
    ends = Counter((line.job, line.token) for line in evidence.lines if line.event in ("end", "fail", "stopped"))
    for line in starts(evidence):
        yield from _row_of(line, rows.get(line.key))
    for row in evidence.last.rows:
        if row.job in evidence.specs or in_crowd(row.job):
            lines = began[row.job, row.token], ends[row.job, row.token]
            if not (evidence.starved and row.status == "failed" and lines == (0, 0)):
                yield from _lines_of(row, *lines)
    yield from _verdicts(evidence, rows)


def nothing_is_left_open(evidence: Evidence) -> Iterator[Violation]:
    """I19: what a task wrote in a transaction that it left open is rolled back when it ends."""
    for name in evidence.left_open:
        yield Violation("I19", f"the row {name!r} of a transaction that was left open has been committed")


def _row_of(line: Line, row: Row | None) -> Iterator[Violation]:
    if row is None:
        yield Violation("I19", f"{line.job} {line.slot} #{line.attempt} started without a row")
    elif row.token != line.token:
        yield Violation("I19", f"{line.job} {line.slot} #{line.attempt}: row token {row.token}, journal {line.token}")
    elif row.status in NEVER_STARTED:
        yield Violation("I19", f"{line.job} {line.slot} #{line.attempt} started, but its row is {row.status}")


def _lines_of(row: Row, began: int, ended: int) -> Iterator[Violation]:
    expected = {"succeeded": (1, 1), "failed": (1, 1)}.get(row.status)
    if expected is not None and (began, ended) != expected:
        yield Violation("I19", f"{row.job} {row.slot} #{row.attempt} {row.status}: {began} starts, {ended} ends")
    elif row.status in ("lost", "cancelled", "timed_out") and began > 1:
        yield Violation("I19", f"{row.job} {row.slot} #{row.attempt} {row.status}: {began} starts")


def _verdicts(evidence: Evidence, rows: dict[tuple[object, ...], Row]) -> Iterator[Violation]:
    """The row says what the body did, unless the run was lost or over its time."""
    allowed = {"end": "succeeded", "fail": "failed", "stopped": "cancelled"}
    for line in evidence.lines:
        row = rows.get(line.key) if line.event in allowed else None
        if row is not None and row.status not in (allowed[line.event], "lost", "timed_out", "running"):
            yield Violation("I19", f"{line.job} {line.slot} #{line.attempt}: body said {line.event}, row {row.status}")
