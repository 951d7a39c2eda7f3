"""Overlap: what happens to a slot whose job is still running."""

from enum import StrEnum


class Overlap(StrEnum):
    """What a job does with slots that come while a run of it lives (the words follow Temporal schedules)."""

    SKIP = "skip"
    """Slots that pass are recorded as one skip when the run ends."""
    QUEUE_ONE = "queue_one"
    """One run follows at once, for the newest slot that passed."""
    ALLOW = "allow"
    """Runs may overlap, up to `max_concurrent`."""
    REPLACE = "replace"
    """The living run is asked to stop; the newest slot starts when it has ended."""


def is_free(overlap: Overlap, active_runs: int, max_concurrent: int) -> bool:
    """Return whether one more run may start beside `active_runs` living ones."""
    return active_runs < (max_concurrent if overlap is Overlap.ALLOW else 1)


def queues(overlap: Overlap) -> bool:
    """Return whether a slot that passed while the job was busy still runs afterwards."""
    return overlap in (Overlap.QUEUE_ONE, Overlap.REPLACE)
