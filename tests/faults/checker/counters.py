"""Counters: what a job counts is what its rows say. I12."""

from collections import Counter
from collections.abc import Iterator

from tests.faults.evidence import Evidence

from .base import Violation, rows_by_job

COLUMNS = {
    "succeeded": "successes",
    "failed": "failures",
    "timed_out": "timeouts",
    "lost": "losses",
    "cancelled": "cancellations",
    "skipped": "skips",
    "missed": "misses",
}


def equal_rows(evidence: Evidence) -> Iterator[Violation]:
    """I12: counters equal rows, and a state that counts successes has counted them all."""
    rows = rows_by_job(evidence)
    for job in evidence.last.jobs:
        counts: Counter[str] = Counter()
        for row in rows.get(job.name, []):
            if not row.is_living:
                counts[row.status] += 1 + (row.coalesced if row.status in ("skipped", "missed") else 0)
        for status, column in COLUMNS.items():
            if getattr(job, column) != counts[status]:
                yield Violation("I12", f"{job.name}: {column} {getattr(job, column)}, rows {counts[status]}")
        spec = evidence.specs.get(job.name)
        if spec is not None and spec.body == "counts" and job.state.get("n", 0) != counts["succeeded"]:
            yield Violation("I12", f"{job.name}: state {job.state}, successes {counts['succeeded']}")
