"""Attempts: how often a slot is tried again, by whose fault, and not before the backoff is over. I11."""

from collections.abc import Iterator
from itertools import groupby, pairwise

from tests.faults.evidence import Evidence, Line, Row
from tests.faults.jobs import MOST_LOST, Spec, backoff_of

from .base import DIED, Violation, endings, rows_by_job, starts

FAILED = ("failed", "timed_out")


def as_often_as_allowed(evidence: Evidence) -> Iterator[Violation]:
    """I11: attempts of a slot are numbered without a gap, and each has its reason in the one before."""
    for job, rows in rows_by_job(evidence).items():
        spec = evidence.specs.get(job)
        if spec is None:
            continue
        for slot, attempts in groupby(rows, key=lambda row: row.slot):
            tries = list({row.attempt: row for row in attempts}.values())
            if [row.attempt for row in tries] != [*range(1, len(tries) + 1)]:
                yield Violation("I11", f"{job} {slot}: attempts {[row.attempt for row in tries]}")
            for number, row in enumerate(tries[:-1], start=1):
                if reason := _why_not(spec, tries[:number]):
                    yield Violation("I11", f"{job} {slot} #{row.attempt} {reason}, and it was tried again")


def _why_not(spec: Spec, tries: list[Row]) -> str:
    """Say why there must be no further attempt after these."""
    last = tries[-1]
    if last.status in FAILED:
        failed = sum(row.status in FAILED for row in tries)
        return "" if failed <= spec.options.get("retries", 0) else f"has failed {failed} times"
    if last.status == "lost":
        died = sum(row.reason.startswith(DIED) for row in tries)
        at_most_once = spec.options.get("on_lost") == "skip" and last.started_at
        return "was lost and runs at most once" if at_most_once else f"was lost {died} times" * (died >= MOST_LOST)
    return "" if last.status == "postponed" else f"has {last.status}"


def not_before_the_backoff(evidence: Evidence) -> Iterator[Violation]:
    """I11: after a failure nothing of the job starts before its backoff is over, which grows failure by failure."""
    if evidence.clock_moved:
        return
    for job, spec in evidence.specs.items():
        if spec.most == 1 and job not in evidence.off_plan:
            yield from _after_failures(evidence, job, backoff_of(spec))


def _after_failures(evidence: Evidence, job: str, steps: list[float]) -> Iterator[Violation]:
    """A success in a process that had been frozen ends a row of failures too; when what starts in one is not judged."""
    statuses = {(row.job, row.token): row for row in evidence.last.rows}
    failures = 0
    ends = endings(evidence)
    for before, after in pairwise(line for line in starts(evidence) if line.job == job):
        row, ending = statuses.get((job, before.token)), ends.get((job, before.token))
        if row is None or ending is None or row.status != "failed":
            failures = 0 if row and row.status == "succeeded" else failures
            continue
        failures += 1
        wait = _wait(steps, failures, before, after)
        judged = evidence.frozen.isdisjoint((before.runner, after.runner))
        if judged and after.mono < ending.mono + wait - evidence.behind:
            yield Violation("I11", f"{job} {after.slot} #{after.attempt} started {after.mono - ending.mono:.2f} s after"
                                   f" a failure, the backoff is {wait:g} s")  # fmt: skip


def _wait(steps: list[float], failures: int, before: Line, after: Line) -> float:
    """A further attempt of a slot waits by the failures of the slot, another slot by those of the job."""
    if after.slot == before.slot:
        failures = before.attempt
    elif failures and before.slot and after.slot and after.slot < before.slot:
        return 0.0  # an attempt of an older slot, promised before
    return steps[min(failures, len(steps)) - 1]
