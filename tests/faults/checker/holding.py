"""Holding: nothing is held by the dead, work goes on after faults, a clean stop leaves nothing. I7, I17, I18."""

from collections import Counter
from collections.abc import Iterator

from tests.faults.evidence import Evidence, Row, Sample
from tests.faults.jobs import Spec

from .base import BUSY, Violation, could_not_leave, endings, starts

WITHIN = 30.0
"""Seconds from the end of the last fault until due work must run again."""
STARTS = 2
"""So many starts, of a process and of its successor, are allowed where they need longer than that."""
UNHELD = 5.0
"""A claimed run that has not started for so long, or whose end is not written for so long, is held by nobody."""


def nothing_held_by_the_dead(evidence: Evidence) -> Iterator[Violation]:
    """I7: at the end of the quiet period every running row belongs to an instance that lives, and really goes on."""
    sample = evidence.quiet
    if sample is None:
        return
    living = [row for row in sample.rows if row.is_living]
    for row in living:
        beat = sample.instances.get(row.instance)
        if beat is None:
            yield Violation("I7", f"{_name(row)} is {row.status}, but its instance {row.instance} is gone")
        elif not evidence.clock_moved and sample.wall - beat > evidence.ttl + evidence.heartbeat + BUSY:
            yield Violation("I7", f"{_name(row)} is {row.status}, its instance silent for {sample.wall - beat:.1f} s")
        else:
            yield from _really_goes_on(evidence, sample, row)
    counts = Counter(row.job for row in living)
    for job in sample.jobs:
        if job.active_runs != counts[job.name]:
            yield Violation("I7", f"{job.name} counts {job.active_runs} living runs, rows {counts[job.name]}")


def _really_goes_on(evidence: Evidence, sample: Sample, row: Row) -> Iterator[Violation]:
    """Its lines in the journal are those of a run that goes on."""
    began = [line.mono for line in starts(evidence) if (line.job, line.token) == (row.job, row.token)]
    ending = endings(evidence).get((row.job, row.token))
    if not began and row.started_at and evidence.early < UNHELD:  # else the clock of the rows was set
        own_process = evidence.specs.get(row.job, Spec(name="")).options.get("executor") == "process"
        allowed = UNHELD + (evidence.warm if own_process else 0)
        if sample.wall - row.started_at.timestamp() > allowed and row.job in evidence.specs:
            yield Violation("I7", f"{_name(row)} is claimed since {row.started_at} and never started")
    elif ending is not None and sample.mono - ending.mono > UNHELD:
        yield Violation("I7", f"{_name(row)} is {row.status}, its body ended {sample.mono - ending.mono:.1f} s before")


def within_seconds(warm: float) -> float:
    """Return within what time due work must run again, on a machine on which processes need so long to start."""
    return max(WITHIN, STARTS * warm)


def runs_again(evidence: Evidence) -> Iterator[Violation]:
    """I17: every steady job has started again within 30 s of the end of the last fault."""
    within = within_seconds(evidence.warm)
    late = {line.job for line in starts(evidence) if 0 < line.mono - evidence.healed <= within}
    for name, spec in sorted(evidence.specs.items()):
        if spec.probe and name not in late:
            yield Violation("I17", f"{name} did not run within {within:g} s of the end of the faults")


def clean_stop(evidence: Evidence) -> Iterator[Violation]:
    """I18: after SIGTERM nothing runs, nothing is claimed, no instance is left, and every process said goodbye."""
    for row in evidence.last.rows:
        if row.is_living:
            yield Violation("I18", f"{_name(row)} is {row.status} after a clean stop")
    for instance in evidence.last.instances:
        yield Violation("I18", f"instance {instance} is left after a clean stop")
    for job in evidence.last.jobs:
        if job.active_runs:
            yield Violation("I18", f"{job.name} counts {job.active_runs} living runs after a clean stop")
    for text in evidence.unclean:
        yield Violation("I18", text)
    yield from _clean_farewells(evidence)


def _clean_farewells(evidence: Evidence) -> Iterator[Violation]:
    """What one process leaves behind while others go on is rescued soon, and would not be seen after the last stop."""
    for farewell in evidence.farewells:
        if farewell.left and not could_not_leave(evidence, farewell):
            yield Violation("I18", f"process {farewell.runner} stopped, and left {', '.join(farewell.left)}")


def _name(row: Row) -> str:
    return f"{row.job} {row.slot} #{row.attempt}"
