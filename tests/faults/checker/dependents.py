"""Dependents: they run for every success of their parents, and for nothing else. I16."""

from collections import defaultdict
from collections.abc import Iterator
from datetime import datetime

from tests.faults.evidence import Evidence, Row

from .base import Violation, endings, rows_by_job, starts


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


def every_success_is_followed(evidence: Evidence) -> Iterator[Violation]:
    """I16: no success of all its parents is left for which a dependent job neither ran nor is planned."""
    if evidence.clock_moved:
        return
    rows = rows_by_job(evidence)
    for job in evidence.last.jobs:
        spec = evidence.specs.get(job.name)
        if spec is None or not spec.parents or evidence.off_plan & {job.name, *spec.parents}:
            continue
        own = rows.get(job.name, [])
        goes_on = job.wake_at or any(row.is_living or row.status == "pending" for row in own)
        since = max((row.slot for row in own), default=job.anchor_at)
        ends = [_last_success(rows.get(parent, [])) for parent in spec.parents]
        if not goes_on and since and all(end and end > since for end in ends):
            yield Violation("I16", f"{job.name} never ran for the successes of {spec.parents} at {ends}")


def _last_success(rows: list[Row]) -> datetime | None:
    return max((row.finished_at for row in rows if row.status == "succeeded" and row.finished_at), default=None)
