"""Clock step: after the clock was set back, plans made by the wrong clock would wait until it catches up."""

from collections.abc import Callable
from datetime import datetime, timedelta

from django.db.models import Max, Q

from scheduler.engine.base import Engine
from scheduler.engine.grid import beginning
from scheduler.engine.plan import jitter_of, policy_of, schedule_of, set_next
from scheduler.engine.write import locked, write_transaction
from scheduler.exceptions import ConfigurationError
from scheduler.models import UNPLANNED, Instance, Job, RunLog, Trigger
from scheduler.schedules import AfterJobs, Schedule

SLOTS_LOOKED_AT = 1000
TOLERANCE = timedelta(seconds=5)


def was_set_back(engine: Engine, tell_time: Callable[[], datetime]) -> bool:
    """Return whether slots or heartbeats are from a time that has not come: the clock went back while nobody watched.

    The clock is read after them: others go on while this process stands still, and that is no step back.
    """
    slot = Job.objects.using(engine.using).aggregate(newest=Max("last_slot"))["newest"]
    heartbeat = Instance.objects.using(engine.using).aggregate(newest=Max("heartbeat_at"))["newest"]
    newest: datetime | None = max(filter(None, (slot, heartbeat)), default=None)
    return newest is not None and newest > tell_time() + TOLERANCE


def clock_moved_back(engine: Engine, now: datetime) -> int:
    """Plan jobs whose next slot is later than their schedule says; returns how many.

    An interval goes on within one interval, on a grid that begins now: the old grid's slots have been run. A fixed time
    takes its first slot that the ledger has not decided yet, so that nothing is repeated. Jobs whose run is going on
    stay busy; what they do next is moved all the same.
    """
    count = 0
    with write_transaction(engine.using):
        _forget_the_future(engine, now)
        later = Q(next_run_at__gt=now) | Q(next_run_at__isnull=False, next_start_at__gt=now)
        jobs = Job.objects.using(engine.using).filter(later).exclude(next_start_at=UNPLANNED)
        for job in locked(jobs.order_by("pk")):
            try:
                count += _pull_forward(engine, job, now)
            except (ConfigurationError, ValueError, OverflowError):
                continue  # the tick will say what is wrong with this one
    return count


def _forget_the_future(engine: Engine, now: datetime) -> None:
    """What happened by the wrong clock has happened by now; promised retries wait no longer than their backoff.

    Nor is an instance alive until the wrong time: those that live renew their heartbeat, the others are soon dead.
    """
    jobs = Job.objects.using(engine.using)
    for column in ("last_success_at", "last_finished_at", "last_outcome_at"):
        jobs.filter(**{f"{column}__gt": now}).update(**{column: now})
    for column in ("last_slot", "anchor_at"):  # since when jobs count what others do
        jobs.filter(schedule__contains='"after_jobs"', **{f"{column}__gt": now}).update(**{column: now})
    Instance.objects.using(engine.using).filter(heartbeat_at__gt=now).update(heartbeat_at=now)
    promised = RunLog.objects.using(engine.using).waiting().filter(due_at__gt=now, trigger=Trigger.RETRY)
    for run in promised.select_related("job"):
        try:
            due_at = now + policy_of(run.job).backoff.step(run.failed_attempts)
        except ConfigurationError:
            continue
        promised.filter(pk=run.pk, due_at__gt=due_at).update(due_at=due_at)


def _pull_forward(engine: Engine, job: Job, now: datetime) -> int:
    schedule, before = schedule_of(job), job.next_run_at
    if schedule.kind == "once":
        return 0
    if isinstance(schedule, AfterJobs):
        slot: datetime | None = now
    elif schedule.period is not None:
        slot = _restart_grid(job, schedule, now)
    else:
        slot = _first_undecided(engine, job, schedule, now)
    if slot is None or before is None or slot >= before:
        return _start_in_time(engine, job, now)
    job.last_slot = None
    set_next(job, slot)
    Job.objects.using(engine.using).filter(pk=job.pk).update(
        anchor_at=job.anchor_at, last_slot=None, next_run_at=job.next_run_at, next_start_at=job.next_start_at
    )
    return 1


def _start_in_time(engine: Engine, job: Job, now: datetime) -> int:
    """The slot is right; a start that was put off until after an end by the wrong clock is not."""
    if job.next_run_at is None or job.next_start_at is None:
        return 0
    longest = jitter_of(job, job.next_run_at) + policy_of(job).backoff.step(job.consecutive_failures) + TOLERANCE
    if job.next_start_at - max(now, job.next_run_at) <= longest:
        return 0
    set_next(job, job.next_run_at)
    return Job.objects.using(engine.using).filter(pk=job.pk).update(next_start_at=job.next_start_at)


def _restart_grid(job: Job, schedule: Schedule, now: datetime) -> datetime | None:
    period = schedule.period
    if period is None or job.next_run_at is None or job.next_run_at <= now + period:
        return None
    job.anchor_at = beginning(job, now)
    return now + period


def _first_undecided(engine: Engine, job: Job, schedule: Schedule, now: datetime) -> datetime | None:
    slots = schedule.upcoming(SLOTS_LOOKED_AT, now)
    decided = set(
        RunLog.objects.using(engine.using)
        .filter(job=job, scheduled_for__in=slots)
        .values_list("scheduled_for", flat=True)
    )
    return next((slot for slot in slots if slot not in decided), None)
