"""Stops: what people or the breaker have stopped does not start, and the breaker says so once. I13, I14."""

from collections.abc import Iterator
from datetime import datetime

from tests.faults.evidence import Evidence, Line, Stop

from .base import Violation, on_monotonic, starts, was_out

FOR_EVER = float("inf")
TOLD_WITHIN = 5.0
"""Seconds after the end of a run in which its end is written, and told."""


def nothing_starts(evidence: Evidence) -> Iterator[Violation]:
    """I13: no run that was claimed after a stop had been committed starts before its end."""
    for stop in evidence.stops:
        for line in _started_in(evidence, stop):
            yield Violation(
                "I13", f"{line.job} {line.slot} started {line.mono - stop.since:.2f} s after it was stopped"
            )


def paused_time_is_not_missed(evidence: Evidence) -> Iterator[Violation]:
    """I13: no run that was claimed after a pause stands for slots that passed while it lasted.

    The slot of a dependent job is the end of its parent, which may have come meanwhile; users wait for the end.
    """
    for stop in evidence.stops if not evidence.clock_moved else ():
        spec = evidence.specs.get(stop.job)
        for row in evidence.last.rows if spec and not (spec.parents or spec.visitors) else ():
            oldest = on_monotonic(evidence, (row.coalesced_from or row.slot).timestamp())
            later = row.job == stop.job and row.attempt == 1 and row.token > stop.token >= 0
            if later and stop.since < oldest < stop.until - evidence.early:
                yield Violation("I13", f"{row.job} {row.slot} stands for slots since {row.coalesced_from}, of a pause")


def broken_once(evidence: Evidence) -> Iterator[Violation]:
    """I14: a job breaks after so many failures, says so once, and starts no more until it is reset."""
    for job in evidence.last.jobs:
        spec = evidence.specs.get(job.name)
        threshold = spec and spec.options.get("breaker_threshold")
        if not threshold:
            continue
        told = [line for line in evidence.lines if line.event == "broken" and line.job == job.name]
        notices = [line for line in told if line.runner not in evidence.frozen]  # which may tell later
        resets = sorted(at for name, at in evidence.resets if name == job.name)
        failed = sum(row.job == job.name and row.status == "failed" for row in evidence.last.rows)
        if failed > threshold * (1 + len(resets)):
            yield Violation(
                "I14", f"{job.name} failed {failed} times, breaks at {threshold}, reset {len(resets)} times"
            )
        if job.consecutive_failures >= threshold and job.broken_at is None:
            yield Violation("I14", f"{job.name} failed {job.consecutive_failures} times in a row and is not broken")
        if job.broken_at and not told and not resets and not _notice_may_be_lost(evidence, job.broken_at):
            yield Violation("I14", f"{job.name} is broken, and nobody was told")
        for begin, end in zip([float("-inf"), *resets], [*resets, FOR_EVER], strict=True):
            yield from _told_once(evidence, [line for line in notices if begin <= line.mono < end], end)


def _notice_may_be_lost(evidence: Evidence, broken_at: datetime) -> bool:
    """Whether a process may have died, or been declared dead, between the commit that broke a job and its signal."""
    if evidence.clock_moved:
        return bool(evidence.dead or evidence.outages)  # the moment cannot be placed
    at = on_monotonic(evidence, broken_at.timestamp())
    died = any(at <= moment <= at + TOLD_WITHIN for moment in evidence.dead.values())
    return died or was_out(evidence, 0, at, at + TOLD_WITHIN)


def _told_once(evidence: Evidence, notices: list[Line], until: float) -> Iterator[Violation]:
    for line in notices[1:]:
        yield Violation("I14", f"{line.job} was said to be broken once more by {line.runner}")
    for line in notices[:1]:
        stop = Stop(job=line.job, token=line.token, since=line.mono, until=until)
        for start in _started_in(evidence, stop):
            yield Violation("I14", f"{start.job} {start.slot} started although it was broken")


def _started_in(evidence: Evidence, stop: Stop) -> list[Line]:
    return [
        line
        for line in starts(evidence)
        if line.job == stop.job and line.token > stop.token and stop.since < line.mono < stop.until
    ]
