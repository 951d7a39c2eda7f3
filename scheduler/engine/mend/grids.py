"""Grids: intervals of databases that share a lock are counted from one instant."""

from scheduler.engine.base import Engine
from scheduler.engine.pauses import SET_ASIDE
from scheduler.engine.plan_basis import EPOCH, has_grid
from scheduler.models import Job
from scheduler.models.job_columns import to_replan
from scheduler.schedules import interval_kinds


def share_grids(engine: Engine) -> int:
    """Move intervals that began without a lock to the common grid; returns how many. One set aside stays unplanned."""
    own = Job.objects.using(engine.using).filter(schedule_kind__in=interval_kinds(), anchor_at__gt=EPOCH)
    own = own.filter(pk__in=[job.pk for job in own.only("pk", "schedule") if has_grid(job)])
    return own.filter(SET_ASIDE).update(anchor_at=EPOCH) + own.update(anchor_at=EPOCH, **to_replan())
