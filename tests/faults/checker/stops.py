"""Stops: what people or the breaker have stopped does not start, and the breaker says so once. I13, I14."""

from collections.abc import Iterator

from tests.faults.evidence import Evidence, Line, Stop

from .base import Violation, starts

FOR_EVER = float("inf")


def nothing_starts(evidence: Evidence) -> Iterator[Violation]:
    """I13: no run that was claimed after a stop had been committed starts before its end."""
    for stop in evidence.stops:
        for line in _started_in(evidence, stop):
            yield Violation(
                "I13", f"{line.job} {line.slot} started {line.mono - stop.since:.2f} s after it was stopped"
            )


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
        if job.broken_at and not notices and not resets and not evidence.notices_may_be_lost:
            yield Violation("I14", f"{job.name} is broken, and nobody was told")
        for begin, end in zip([float("-inf"), *resets], [*resets, FOR_EVER], strict=True):
            yield from _told_once(evidence, [line for line in notices if begin <= line.mono < end], end)


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
