"""Grid: where the intervals of a job are counted from."""

from datetime import datetime

from scheduler.conf import conf
from scheduler.engine.base import Engine
from scheduler.models import UNPLANNED, Job
from scheduler.schedules import Every

EPOCH = UNPLANNED
"""1970-01-01 00:00 UTC, from which Temporal counts intervals, too."""


def beginning(job: Job, now: datetime) -> datetime:
    """Return the anchor of a job that begins now.

    Databases that share a lock must agree on the slots of an interval, or each would run its own: they count from one
    instant that all of them know.
    """
    is_grid = isinstance(job.schedule, Every) and not job.schedule.from_completion
    return EPOCH if is_grid and conf.LOCK_URL else now


def share_grids(engine: Engine) -> int:
    """Move intervals that began without a lock to the common grid; returns how many."""
    own = Job.objects.using(engine.using).filter(schedule__contains='"type":"every"', anchor_at__gt=EPOCH)
    own = own.exclude(schedule__contains='"from_completion":true')
    return own.update(anchor_at=EPOCH, next_start_at=UNPLANNED)
