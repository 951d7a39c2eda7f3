"""Tokens: they grow, and what is over stays over. I5, I6."""

from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import pairwise

from tests.faults.evidence import Evidence, Line, Row

from .base import Violation, samples, starts, was_declared_dead

NO_RUN = ("skipped", "missed", "pending")


def grow(evidence: Evidence) -> Iterator[Violation]:
    """I5: no two runs of a job have one token, none a later one than the job; starts come in the order of tokens."""
    tokens = {job.name: job.token for job in evidence.last.jobs}
    used = Counter((row.job, row.token) for row in evidence.last.rows if row.token and row.status not in NO_RUN)
    for (job, token), count in used.items():
        if count > 1:
            yield Violation("I5", f"{job}: {count} rows have token {token}")
        if token > tokens.get(job, 0):
            yield Violation("I5", f"{job}: a row has token {token}, the job {tokens.get(job)}")
    yield from _order(evidence)


def _order(evidence: Evidence) -> Iterator[Violation]:
    lines: dict[str, list[Line]] = defaultdict(list)
    rows = {row.key: row for row in evidence.last.rows}
    for line in starts(evidence):
        by_the_clock = evidence.clock_moved and was_declared_dead(rows.get(line.key))  # although it lives
        if line.runner not in evidence.frozen and not by_the_clock and _is_serial(evidence, line.job):
            lines[line.job].append(line)
    for job, of_job in lines.items():
        for before, after in pairwise(of_job):
            if after.token <= before.token:
                yield Violation("I5", f"{job}: token {after.token} of {after.slot} started after {before.token}")


def _is_serial(evidence: Evidence, job: str) -> bool:
    spec = evidence.specs.get(job)
    return spec is not None and spec.most == 1


def terminal_stays(evidence: Evidence) -> Iterator[Violation]:
    """I6: a row that is over never changes its verdict."""
    over: dict[int, Row] = {}
    for sample in samples(evidence):
        rows = {row.id: row for row in sample.rows}
        for pk, before in over.items():
            now = rows.get(pk)
            if now is None or _verdict(now) != _verdict(before):
                yield Violation("I6", f"{before.job} {before.slot} was {_verdict(before)}, is {now and _verdict(now)}")
        over = {pk: row for pk, row in rows.items() if row.status not in ("pending", "running") and not row.is_living}


def only_the_living_save(evidence: Evidence) -> Iterator[Violation]:
    """I5: a row has the state of its run only while that lives; what is saved under a void token stands nowhere."""
    for row in evidence.last.rows:
        if row.saved and not row.is_living:
            yield Violation("I5", f"{row.job} {row.slot} is {row.status}, and its run has saved its state since")


def _verdict(row: Row) -> tuple[object, ...]:
    return row.status, row.token, row.finished_at
