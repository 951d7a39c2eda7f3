"""Activity: of what users did, a run that began later knows, or will. I20."""

from collections.abc import Iterator

from tests.faults.evidence import Entry, Evidence, Line, Sample

from .base import Violation, starts

LONGEST_WAIT = 12.0
"""Seconds from an activity until its run begins: an interval, a look for who is due, a process that may have died.

The one that follows it needs its time to start, which is added.
"""


def no_event_is_lost(evidence: Evidence) -> Iterator[Violation]:
    """I20: for the last activity of each user a run has begun since, or its entry waits for one."""
    entries = {entry.user_key.replace("\\", ""): entry for entry in evidence.last.entries}
    for user, told in _last_told(evidence).items():
        if not _has_begun_since(evidence, told) and not _waits(evidence, entries.get(user)):
            yield Violation("I20", f"what {user} did last, at {told.mono:.2f}, has no run, and none is to come")


def no_event_waits_for_ever(evidence: Evidence) -> Iterator[Violation]:
    """I20: while processes live, a run begins before long. One that fails, or whose job was stopped, may wait."""
    quiet = evidence.quiet
    if quiet is None or evidence.clock_moved or "visitors" in evidence.off_plan:
        return
    if any(stop.job == "visitors" for stop in evidence.stops):
        return
    latest = quiet.mono - LONGEST_WAIT - evidence.warm
    for told in evidence.lines:
        if told.event == "told" and told.mono < latest and not _has_begun_since(evidence, told):
            yield Violation("I20", f"what {told.user} did at {told.mono:.2f} had no run by {quiet.mono:.2f}")


def _last_told(evidence: Evidence) -> dict[str, Line]:
    """Return the last activity of each user that is certain to have been noted."""
    return {line.user: line for line in evidence.lines if line.event == "told"}


def _has_begun_since(evidence: Evidence, told: Line) -> bool:
    return any(line.user == told.user and line.mono > told.began for line in starts(evidence))


def _waits(evidence: Evidence, entry: Entry | None) -> bool:
    """Whether a run is to come: the entry is due, has news, or has a run that waits to be claimed."""
    if entry is None:
        return False
    if entry.state != "running":
        return entry.state == "pending"
    return entry.events != entry.taken_events or _is_open(evidence.last, entry)


def _is_open(sample: Sample, entry: Entry) -> bool:
    return any(row.job == "visitors" and row.slot == entry.slot and row.status == "pending" for row in sample.rows)
