"""Write off: the row of slots that have passed and of which none runs."""

from scheduler.models import Job, RunLog, Status
from scheduler.models.run import COUNTERS
from scheduler.policy.misfire import Passed

OVERLAP = "overlap: the run before was still going"


def write_off(job: Job, slots: Passed, status: Status, reason: str) -> RunLog:
    """Return the one row that stands for slots that were skipped or missed, and count each of them on the job."""
    counter = COUNTERS[status]
    setattr(job, counter, getattr(job, counter) + slots.total)
    return RunLog.of(
        job,
        scheduled_for=slots.newest,
        status=status,
        reason=reason,
        coalesced=slots.total - 1,
        coalesced_from=slots.first if slots.total > 1 else None,
    )
