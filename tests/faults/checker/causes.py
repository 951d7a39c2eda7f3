"""Causes: what did not end as its body did has a reason that journal, faults and options bear out. I3, I7."""

from collections.abc import Iterator

from tests.faults.evidence import Evidence, Row
from tests.faults.jobs import Spec

from .base import DIED, Violation, could_not_leave, on_monotonic, rows_by_job, starts, was_out

LAPSES = 8.0
"""Seconds after an outage in which leases may be found to have lapsed in it: the time to live, and a busy machine."""
NOTED = 0.5
"""Seconds by which a death may be noted late."""


def only_the_dead_are_rescued(evidence: Evidence) -> Iterator[Violation]:
    """I7: a run is lost to the death of its process only if that died, or could not renew its lease.

    Who ran it is known by its own line in the journal, else by that of another run of the same instance.
    """
    if evidence.clock_moved:
        return  # leases go by the clock that was set
    rows = {(row.job, row.token): row for row in evidence.last.rows}
    began = [(rows[line.job, line.token], line.runner) for line in starts(evidence) if (line.job, line.token) in rows]
    by_row = {row.id: runner for row, runner in began}
    by_instance = {row.instance: runner for row, runner in began}
    for row in evidence.last.rows:
        runner = by_row.get(row.id, by_instance.get(row.instance, 0))
        if runner and _is_rescued(row) and not _is_excused(evidence, runner, row):
            yield Violation("I7", f"{row.job} {row.slot} #{row.attempt} was lost, and its process {runner} lived")


def _is_rescued(row: Row) -> bool:
    return row.status == "lost" and row.reason.startswith(DIED)


def _is_excused(evidence: Evidence, runner: int, row: Row) -> bool:
    at = on_monotonic(evidence, row.finished_at.timestamp()) if row.finished_at else 0.0
    died_at = evidence.dead.get(runner, float("inf"))
    left = any(one.runner == runner and could_not_leave(evidence, one) for one in evidence.farewells)
    return died_at <= at + NOTED or was_out(evidence, runner, at - LAPSES, at) or left


def nothing_ends_without_a_cause(evidence: Evidence) -> Iterator[Violation]:
    """I3: a skip has a run that was in its way, a miss a policy, a timeout a limit, a cancellation somebody."""
    for job, rows in rows_by_job(evidence).items():
        spec = evidence.specs.get(job)
        for row in rows if spec else ():
            if spec is not None and (text := _no_cause(spec, row, rows, evidence)):
                yield Violation("I3", f"{job} {row.slot} #{row.attempt} is {row.status}: {text}")


def _no_cause(spec: Spec, row: Row, rows: list[Row], evidence: Evidence) -> str:
    """Say why a row has no reason to be what it is. A clock that was set is one for misses and skips."""
    options = spec.options
    if row.status == "running" and not row.is_living:
        return "it holds no place"
    if row.status == "timed_out" and "timeout" not in options:
        return "it has no limit"
    if row.status == "cancelled" and options.get("overlap") != "replace" and not _is_stopped(spec, row, evidence):
        return "nobody wished it"
    if evidence.clock_moved:
        return ""
    if row.status == "missed" and options.get("misfire") not in ("skip", "run_all"):
        return "its policy is to catch up"
    if row.status == "skipped" and row.reason.startswith("overlap") and not any(_passes(one, row) for one in rows):
        return "no run was in its way"
    return ""


def _is_stopped(spec: Spec, row: Row, evidence: Evidence) -> bool:
    """A promised attempt is cancelled when it is due and its job is paused, or broken."""
    return row.started_at is None and (row.job in evidence.off_plan or "breaker_threshold" in spec.options)


def _passes(run: Row, skipped: Row) -> bool:
    """Whether a run lived while slots passed: it was for one before them, and ended after them."""
    oldest = skipped.coalesced_from or skipped.slot
    return bool(run.started_at and run.finished_at and run.slot < oldest and skipped.slot <= run.finished_at)
