"""Testimony: journal and ledger tell the same story. I4, I16, I19."""

from collections import Counter, defaultdict
from collections.abc import Iterator

from tests.faults.evidence import Evidence, Line, Row
from tests.faults.jobs import in_crowd

from .base import Violation, endings, starts

NEVER_STARTED = ("skipped", "missed", "pending")


def not_early(evidence: Evidence) -> Iterator[Violation]:
    """I4: nothing starts before its slot, by the clock of the database."""
    for line in starts(evidence):
        if line.slot is not None and line.wall + evidence.early < line.slot.timestamp():
            early = line.slot.timestamp() - line.wall
            yield Violation("I4", f"{line.job} {line.slot} started {early:.3f} s early in {line.runner}")


def after_parents(evidence: Evidence) -> Iterator[Violation]:
    """I16: a dependent job starts only after its parents' success was committed, which is its slot.

    Successes of a clock that was set back since count as of that moment, so only how many there were can be judged.
    """
    if evidence.clock_moved:
        yield from _no_more_than_parents(evidence)
        return
    ends = {
        (row.job, row.finished_at): row for row in evidence.last.rows if row.status == "succeeded" and row.finished_at
    }
    bodies = endings(evidence)
    for line in starts(evidence):
        spec = evidence.specs.get(line.job)
        if spec is None or not spec.parents:
            continue
        succeeded = [ends[parent, line.slot] for parent in spec.parents if (parent, line.slot) in ends]
        if not succeeded:
            yield Violation("I16", f"{line.job} ran for {line.slot}, when none of {spec.parents} succeeded")
        for row in succeeded:
            body = bodies.get((row.job, row.token))
            if body is None or body.mono > line.mono:
                yield Violation("I16", f"{line.job} {line.slot} started before {row.job} had ended")


def _no_more_than_parents(evidence: Evidence) -> Iterator[Violation]:
    bodies = endings(evidence)
    ended = [
        (row.job, bodies[row.job, row.token].mono)
        for row in evidence.last.rows
        if row.status == "succeeded" and (row.job, row.token) in bodies
    ]
    slots: dict[str, set[object]] = defaultdict(set)
    for line in starts(evidence):
        spec = evidence.specs.get(line.job)
        slots[line.job].add(line.slot)
        for parent in spec.parents if spec else ():
            before = sum(job == parent and at < line.mono for job, at in ended)
            if before < len(slots[line.job]):
                yield Violation("I16", f"{line.job} {line.slot} started after {before} successes of {parent}")


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
