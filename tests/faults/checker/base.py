"""What the rules share: a violation, and how instants of the ledger lie on the monotonic clock."""

from collections import defaultdict
from dataclasses import dataclass

from tests.faults.evidence import RUN_EVENTS, Evidence, Farewell, Line, Row, Sample

DIED = "its process died"
DECLARED_DEAD = (DIED, "its process was stopped", "its lease was lost", "it was stuck")
BUSY = 3.0
"""Seconds that a machine may need to act on what it knows: it may be busy, and looking at a file holds writers up."""


@dataclass(frozen=True, slots=True)
class Violation:
    """A broken promise, named as in the design, with what shows it."""

    invariant: str
    text: str

    def __str__(self) -> str:
        return f"{self.invariant}: {self.text}"


def rows_by_job(evidence: Evidence) -> dict[str, list[Row]]:
    """Return the rows of each job by slot and attempt."""
    found: dict[str, list[Row]] = defaultdict(list)
    for row in sorted(evidence.last.rows, key=lambda row: (row.job, row.slot, row.attempt)):
        found[row.job].append(row)
    return found


def samples(evidence: Evidence) -> list[Sample]:
    """Return all looks at the database, oldest first."""
    return [*evidence.earlier, *([evidence.quiet] if evidence.quiet else []), evidence.last]


def starts(evidence: Evidence) -> list[Line]:
    return [line for line in evidence.lines if line.event == "start"]


def endings(evidence: Evidence) -> dict[tuple[str, int], Line]:
    """Return how the body of each run ended, by job and token."""
    return {(line.job, line.token): line for line in evidence.lines if line.event in RUN_EVENTS[1:]}


def was_declared_dead(row: Row | None) -> bool:
    """Return whether a run was closed by others, so that its body may have gone on."""
    return row is not None and row.finished_at is not None and row.reason.startswith(DECLARED_DEAD)


def was_out(evidence: Evidence, runner: int, since: float, until: float) -> bool:
    """Return whether a fault kept a process from its work at some time of an interval; 0: any process."""
    outages = [one for one in evidence.outages if one.since <= until and since <= one.until]
    return any(not runner or not one.runners or runner in one.runners for one in outages)


def could_not_leave(evidence: Evidence, farewell: Farewell) -> bool:
    """Return whether a process that stopped may have left something: whoever stands still may hold what it needs."""
    return was_out(evidence, 0, farewell.since - BUSY, farewell.until)


def on_monotonic(evidence: Evidence, seconds: float) -> float:
    """Return the monotonic time of an instant of the true wall clock."""
    return seconds - (evidence.last.wall - evidence.last.mono)
