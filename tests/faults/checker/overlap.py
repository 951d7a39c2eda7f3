"""Overlap: how many runs go on at once, by the journal. I2, I15.

A run goes on from its first line to its last. One without a last line went on until its process was killed. One whose
instance was declared dead counts until its row was closed: a frozen process may go on with its handler when it thaws,
and the slot has another attempt by then. That is “at least once”; the ledger must be right all the same.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator

from tests.faults.evidence import Evidence, Line, Row
from tests.faults.jobs import GROUP, GROUP_LIMIT, WORKERS

from .base import Violation, endings, on_monotonic, starts, was_declared_dead

SLACK = 0.05


def at_most_so_many(evidence: Evidence) -> Iterator[Violation]:
    """I2: never more runs of a job at once than it allows."""
    by_job: dict[str, list[tuple[float, float, Line]]] = defaultdict(list)
    for span in _spans(evidence):
        by_job[span[2].job].append(span)
    for job, spans in sorted(by_job.items()):
        spec = evidence.specs.get(job)
        for text in _too_many(spans, spec.most if spec else 1):
            yield Violation("I2", f"{job}: {text}")


def one_run_of_a_user(evidence: Evidence) -> Iterator[Violation]:
    """I2: never two runs of one user at once."""
    by_user: dict[str, list[tuple[float, float, Line]]] = defaultdict(list)
    for span in _spans(evidence):
        if span[2].user:
            by_user[span[2].user].append(span)
    for user, spans in sorted(by_user.items()):
        for text in _too_many(spans, 1):
            yield Violation("I2", f"user {user}: {text}")


def group_limit(evidence: Evidence) -> Iterator[Violation]:
    """I15: never more runs of a group at once than its limit."""
    members = {name for name, spec in evidence.specs.items() if spec.group == GROUP}
    spans = [span for span in _spans(evidence) if span[2].job in members]
    for text in _too_many(spans, GROUP_LIMIT):
        yield Violation("I15", f"group {GROUP}: {text}")


def pool_limit(evidence: Evidence) -> Iterator[Violation]:
    """I15: never more runs at once in one process than it has workers. Async ones go on beside their threads."""
    by_runner: dict[int, list[tuple[float, float, Line]]] = defaultdict(list)
    for span in _spans(evidence):
        spec = evidence.specs.get(span[2].job)
        if spec is None or not (spec.body == "async" or spec.visitors):
            by_runner[span[2].runner].append(span)
    for runner, spans in sorted(by_runner.items()):
        for text in _too_many(spans, WORKERS):
            yield Violation("I15", f"process {runner}: {text}")


def _spans(evidence: Evidence) -> Iterator[tuple[float, float, Line]]:
    ends, rows = endings(evidence), {row.key: row for row in evidence.last.rows}
    for line in starts(evidence):
        ending = ends.get((line.job, line.token))
        until = [ending.mono] if ending else [evidence.last.mono]
        if line.runner in evidence.dead:
            until.append(evidence.dead[line.runner])
        until += _declared_dead(evidence, line, rows.get(line.key))
        yield line.mono, min(until), line


def _declared_dead(evidence: Evidence, line: Line, row: Row | None) -> list[float]:
    if row is None or row.finished_at is None or not was_declared_dead(row):
        return []
    if evidence.clock_moved:
        return [line.mono]  # its end cannot be placed
    return [on_monotonic(evidence, row.finished_at.timestamp()) - evidence.early]


def _too_many(spans: Iterable[tuple[float, float, Line]], most: int) -> Iterator[str]:
    going: list[tuple[float, Line]] = []
    for start, end, line in sorted(spans, key=lambda span: span[0]):
        going = [one for one in going if one[0] - SLACK > start]
        if end > start:
            going.append((end, line))
        if len(going) > most:
            names = ", ".join(
                f"{one.job} {one.slot} #{one.attempt} token {one.token} by {one.runner}" for _, one in going
            )
            yield f"{len(going)} at once, {most} allowed: {names}"
