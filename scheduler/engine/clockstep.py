"""Clock step: after the clock was set back, plans made by the wrong clock would wait until it catches up."""

from datetime import datetime

from scheduler.engine.base import Engine
from scheduler.engine.plan import schedule_of, set_next
from scheduler.engine.write import locked, write_transaction
from scheduler.exceptions import ConfigurationError
from scheduler.models import UNPLANNED, Job, RunLog
from scheduler.schedules import Schedule

SLOTS_LOOKED_AT = 1000


def clock_moved_back(engine: Engine, now: datetime) -> int:
    """Plan jobs whose next slot is later than their schedule says; returns how many.

    An interval goes on within one interval, on a grid that begins now: the old grid's slots have been run. A fixed time
    takes its first slot that the ledger has not decided yet, so that nothing is repeated.
    """
    count = 0
    with write_transaction(engine.using):
        jobs = Job.objects.using(engine.using).filter(next_run_at__gt=now, next_start_at__isnull=False)
        for job in locked(jobs.exclude(next_start_at=UNPLANNED)):
            try:
                count += _pull_forward(engine, job, now)
            except (ConfigurationError, ValueError, OverflowError):
                continue  # the tick will say what is wrong with this one
    return count


def _pull_forward(engine: Engine, job: Job, now: datetime) -> int:
    schedule, before = schedule_of(job), job.next_run_at
    if schedule.kind == "once":
        return 0
    if schedule.period is not None:
        slot = _restart_grid(job, schedule, now)
    else:
        slot = _first_undecided(engine, job, schedule, now)
    if slot is None or before is None or slot >= before:
        return 0
    job.last_slot = None
    set_next(job, slot)
    Job.objects.using(engine.using).filter(pk=job.pk).update(
        anchor_at=job.anchor_at, last_slot=None, next_run_at=job.next_run_at, next_start_at=job.next_start_at
    )
    return 1


def _restart_grid(job: Job, schedule: Schedule, now: datetime) -> datetime | None:
    period = schedule.period
    if period is None or job.next_run_at is None or job.next_run_at <= now + period:
        return None
    job.anchor_at = now
    return now + period


def _first_undecided(engine: Engine, job: Job, schedule: Schedule, now: datetime) -> datetime | None:
    slots = schedule.upcoming(SLOTS_LOOKED_AT, now)
    decided = set(
        RunLog.objects.using(engine.using)
        .filter(job=job, scheduled_for__in=slots)
        .values_list("scheduled_for", flat=True)
    )
    return next((slot for slot in slots if slot not in decided), None)
