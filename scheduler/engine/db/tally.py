"""Tally: count what has come of runs and slots, in the transaction that writes it.

Five places write how runs end, or that slots have none: ends (`finish.py`), due slots (`claim.py`), promised attempts
that are cancelled (`claim_promised.py`, `control/runs.py`), and runs for users elsewhere (`activity/service.py`). Each
has changed the row of the job by then, so nothing else can count for that job at the same time.
"""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from scheduler.engine.db.add import add_rows
from scheduler.models import RAN, RunLog, Status, Tally, Trigger
from scheduler.models.tally import AMOUNTS, KEY, LATE_MS, NOT_MEASURED, TOOK_MS, WITH_ERRORS

TIMED = (Status.SUCCEEDED, Status.FAILED, Status.TIMED_OUT)
"""Runs whose end was reported; for a lost run it would be the moment of detection."""
REASONS = ("overlap", "gate", "rate_limited", "lock")
"""How the reasons begin for which slots are skipped."""
OTHER = "other"
MICROSECOND = timedelta(microseconds=1)
LONGEST = 10 * 366 * 86_400 * 1_000_000
"""Microseconds that one run adds at most, whatever its clock has said."""

Key = tuple[int, str, str, int, int]
RUNS = {str(status): str(status) for status in (*RAN, Status.CANCELLED)}
SLOTS = {str(status): str(status) for status in (Status.SKIPPED, Status.MISSED)}
TRIGGERS = {str(trigger): str(trigger) for trigger in Trigger}
PROMPT = frozenset(str(trigger) for trigger in Trigger.which("has_lateness"))


def count_runs(using: str, runs: Iterable[RunLog], status: str = "") -> None:
    """Count the runs that have ended, and the slots that were skipped or missed; others are left out.

    With `status` they have ended so, whatever they say. A postponed slot has a further attempt, and that one counts.
    """
    counted: dict[Key, list[int]] = {}
    for run in runs:
        ended = status or run.status
        if ended in RUNS:
            key, *more = _run(run, RUNS[ended])
        elif ended in SLOTS:
            key, more = _slots(run, SLOTS[ended]), [1 + run.coalesced, 0, 0]
        else:
            continue
        amounts = counted.setdefault(key, [0, 0, 0])
        for place, amount in enumerate(more):
            amounts[place] += amount
    if counted:
        add_rows(using, Tally, KEY, AMOUNTS, [(*key, *counted[key]) for key in sorted(counted)])


def _run(run: RunLog, status: str) -> tuple[Key, int, int, int]:
    took = late = 0
    took_within = late_within = NOT_MEASURED
    trigger = TRIGGERS.get(run.trigger, "")
    if status in TIMED and run.started_at is not None and run.finished_at is not None:
        took = microseconds(run.started_at, run.finished_at)
        took_within = bucket_of(TOOK_MS, took)
        if run.attempt == 1 and trigger in PROMPT:
            late = microseconds(run.scheduled_for, run.started_at)
            late_within = bucket_of(LATE_MS, late)
        if status == Status.SUCCEEDED and run.errors:
            status = WITH_ERRORS
    return (run.job_id, status, trigger, took_within, late_within), 1, took, late


def microseconds(start: datetime, end: datetime) -> int:
    return min(max((end - start) // MICROSECOND, 0), LONGEST)


def bucket_of(bounds: Sequence[int], microseconds: int) -> int:
    """Return the lowest of the bounds, in milliseconds, that does not lie below; the last one has no end."""
    return bounds[bisect_left(bounds, microseconds / 1000, hi=len(bounds) - 1)]


def _slots(run: RunLog, status: str) -> Key:
    reason = "" if status == Status.MISSED else run.reason.partition(":")[0]
    cause = reason if not reason or reason in REASONS else OTHER
    return run.job_id, status, cause, NOT_MEASURED, NOT_MEASURED
