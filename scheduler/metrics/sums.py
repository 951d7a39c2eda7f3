"""Sums: what has been counted, added up by the labels that a scrape tells, in one pass over the rows."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from scheduler.engine.views.tallies import Counted, is_of_other
from scheduler.models import Status
from scheduler.models.tally import LAST_WITH_LABEL, WITH_ERRORS

OTHER = "other"
"""The label of all jobs that have none of their own."""
STATUSES: Mapping[str, str] = {
    Status.SUCCEEDED: "success",
    WITH_ERRORS: "errors",
    Status.FAILED: "failure",
    Status.TIMED_OUT: "timeout",
    Status.LOST: "lost",
    Status.CANCELLED: "cancelled",
}
"""The label `status` of each status of runs."""


def _numbers() -> defaultdict[tuple[str, ...], int]:
    return defaultdict(int)


def _measures() -> defaultdict[tuple[str, int], list[int]]:
    return defaultdict(lambda: [0, 0])


@dataclass(frozen=True, slots=True)
class Sums:
    """Sums by labels. The label of a job is empty for a deleted one that had a label of its own."""

    runs: defaultdict[tuple[str, ...], int] = field(default_factory=_numbers)
    """By label, status of the ledger (or `errors`) and cause."""
    slots: defaultdict[tuple[str, ...], int] = field(default_factory=_numbers)
    """Skipped and missed ones, likewise."""
    took: defaultdict[tuple[str, int], list[int]] = field(default_factory=_measures)
    """By label and bound in milliseconds: how many, and the sum of their durations in microseconds."""
    late: defaultdict[tuple[str, int], list[int]] = field(default_factory=_measures)
    """By cause and bound, likewise, of start delays."""


def summed(rows: Iterable[Counted], labels: Mapping[int, str], last: int) -> Sums:
    """Add up all rows; `labels` are those of jobs by their ids, `last` that of `within_border`.

    There may be tens of thousands, at each scrape: each is looked at once.
    """
    found, known = Sums(), dict(labels)
    runs, slots, took_sums, late_sums = found.runs, found.slots, found.took, found.late
    for job_id, status, cause, took_within, late_within, times, took, late in rows:
        if job_id == LAST_WITH_LABEL:
            continue
        label = known.get(job_id)
        if label is None:
            label = known[job_id] = OTHER if is_of_other(job_id, last) else ""
        if status not in STATUSES:
            slots[label, status, cause] += times
            continue
        runs[label, status, cause] += times
        if took_within:
            measured = took_sums[label, took_within]
            measured[0] += times
            measured[1] += took
        if late_within:
            measured = late_sums[cause, late_within]
            measured[0] += times
            measured[1] += late
    return found
