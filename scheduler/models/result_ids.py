"""Ids of results: made of the job and the slot of a task, so the same for all its attempts. They are no secret."""

import re
from datetime import UTC, datetime, timedelta

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)
SHAPE = re.compile(r"([1-9][0-9]{0,18})-(0|[1-9][0-9]{0,19})")
LARGEST = 2**63


def id_of(job_id: int, slot: datetime) -> str:
    """Return the id of a result: the same for all attempts of a task."""
    return f"{job_id}-{(slot - EPOCH) // MICROSECOND}"


def slot_of(result_id: object) -> tuple[int, datetime] | None:
    """Return the job and the slot that an id means; None for what is no id."""
    found = SHAPE.fullmatch(result_id) if isinstance(result_id, str) else None
    if found is None:
        return None
    job_id, microseconds = int(found[1]), int(found[2])
    try:
        slot = EPOCH + microseconds * MICROSECOND
    except OverflowError:
        return None
    return (job_id, slot) if job_id < LARGEST else None
