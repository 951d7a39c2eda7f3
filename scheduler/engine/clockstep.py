"""Clock step: after the clock was set back, plans made by the wrong clock would wait until it catches up."""

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from itertools import groupby
from operator import itemgetter

from django.db.models import F, Max, Q

from scheduler.engine.base import Engine
from scheduler.engine.bulk import LostRace, update_rows
from scheduler.engine.grid import beginning
from scheduler.engine.plan import end_of_backoff, schedule_of, set_next, slots_begin
from scheduler.engine.promises import hurry_promises
from scheduler.engine.write import write_transaction
from scheduler.exceptions import ConfigurationError
from scheduler.models import UNPLANNED, Activity, EntryState, Instance, Job, RunLog
from scheduler.models.primary import locked
from scheduler.policy.misfire import RESOLUTION
from scheduler.schedules import AfterJobs, Schedule

TOLERANCE = timedelta(seconds=5)
JOBS_AT_ONCE = 200
COLUMNS = ("version", "anchor_at", "last_slot", "next_run_at", "next_start_at")


def was_set_back(engine: Engine, tell_time: Callable[[], datetime]) -> bool:
    """Return whether slots or heartbeats are from a time that has not come: the clock went back while nobody watched.

    The clock is read after them: others go on while this process stands still, and that is no step back.
    """
    slot = Job.objects.using(engine.using).aggregate(newest=Max("last_slot"))["newest"]
    heartbeat = Instance.objects.using(engine.using).aggregate(newest=Max("heartbeat_at"))["newest"]
    newest: datetime | None = max(filter(None, (slot, heartbeat)), default=None)
    return newest is not None and newest > tell_time() + TOLERANCE


def clock_moved_back(engine: Engine, now: datetime) -> int:
    """Plan jobs whose next slot or start is later than their schedule says; returns how many.

    An interval goes on within one interval, on a grid that begins now: the old grid's slots have been run. A fixed time
    takes its first slot that the ledger has not decided yet, so that nothing is repeated. Jobs whose run is going on
    stay busy; what they do next is moved all the same. A few jobs at a time: heartbeats must not wait for all of them.
    """
    with write_transaction(engine.using):
        _forget_the_future(engine, now)
    hurry_promises(engine, now)
    later = Q(next_run_at__gt=now) | Q(next_run_at__isnull=False, next_start_at__gt=now)
    planned = Job.objects.using(engine.using).filter(later).exclude(next_start_at=UNPLANNED).order_by("pk")
    count, last = 0, 0
    while jobs := list(planned.filter(pk__gt=last).defer("state")[:JOBS_AT_ONCE]):
        last = jobs[-1].pk
        try:
            count += _repair(engine, jobs, now)
        except LostRace:
            with write_transaction(engine.using):
                count += _repair(engine, list(locked(planned.filter(pk__in=[job.pk for job in jobs]))), now)
    return count


def _forget_the_future(engine: Engine, now: datetime) -> None:
    """What happened by the wrong clock has happened by now.

    Nor is an instance alive until the wrong time: those that live renew their heartbeat, the others are soon dead.
    """
    jobs = Job.objects.using(engine.using)
    for column in ("last_success_at", "last_finished_at", "last_outcome_at", "broken_at"):
        jobs.filter(**{f"{column}__gt": now}).update(**{column: now})
    for column in ("last_slot", "anchor_at"):  # since when jobs count what others do
        jobs.filter(schedule__contains='"after_jobs"', **{f"{column}__gt": now}).update(**{column: now})
    Instance.objects.using(engine.using).filter(heartbeat_at__gt=now).update(heartbeat_at=now)
    _hurry_users(engine, now)


def _hurry_users(engine: Engine, now: datetime) -> None:
    """Users who became active by the wrong clock are due now, but for those that a request is just writing of."""
    entries = Activity.objects.using(engine.using).filter(created_at__gt=now)
    pending = entries.filter(state=EntryState.PENDING, wake_at__gt=now)
    ids = list(locked(pending, skip_locked=True).values_list("pk", flat=True))
    pending.filter(pk__in=ids).update(created_at=now, wake_at=now, version=F("version") + 1)


def _repair(engine: Engine, jobs: Sequence[Job], now: datetime) -> int:
    """Plan jobs again and write those that changed; raises LostRace when somebody else has changed one meanwhile."""
    undecided = _first_undecided(engine, jobs, now)
    changed = [job for job in jobs if _pull_forward(job, undecided.get(job.pk), now)]
    if not changed:
        return 0
    for job in changed:
        job.version += 1
    rows = ((*(getattr(job, column) for column in COLUMNS), job.pk, job.version - 1) for job in changed)
    with write_transaction(engine.using):
        update_rows(engine.using, Job, COLUMNS, ("id", "version"), rows)
    return len(changed)


def _pull_forward(job: Job, undecided: datetime | None, now: datetime) -> bool:
    """Move the plan of a job to where the right clock has it, if that is earlier; True when it was."""
    try:
        schedule, planned, start = schedule_of(job), job.next_run_at, job.next_start_at
        slot = _slot_by(job, schedule, undecided, now)
        is_earlier = slot is not None and planned is not None and slot < planned
        if is_earlier and schedule.period is not None:
            job.anchor_at = beginning(job, now)
        set_next(job, slot if is_earlier else planned, not_before=end_of_backoff(job))
    except (ConfigurationError, ValueError, OverflowError):
        return False  # the tick will say what is wrong with this one
    if is_earlier:
        job.last_slot = job.last_slot if job.last_slot and job.last_slot <= now else None
        return True
    # The slot is right; a start that was put off until after an end by the wrong clock is not.
    return start is not None and job.next_start_at is not None and job.next_start_at < start


def _slot_by(job: Job, schedule: Schedule, undecided: datetime | None, now: datetime) -> datetime | None:
    """Return the next slot of a job by the clock that says `now`."""
    begin = slots_begin(job, now)
    if isinstance(schedule, AfterJobs):
        return begin + RESOLUTION  # its parents have ended by now
    if schedule.period is None:
        return undecided
    first = job.schedule.next_after(begin)  # not on the grid of the job, but on one that its schedule names
    return None if first is None else max(first, now + schedule.period)


def _first_undecided(engine: Engine, jobs: Iterable[Job], now: datetime) -> dict[int, datetime]:
    """Return the first slots of jobs, by id, that nothing has decided although they are earlier than planned.

    Almost all plans are right, as one look at the schedule tells; the ledger is asked about the others only, at once.
    A slot that the wrong clock only counted on the row of a later one is not decided: a clock that was wrong for a
    moment would silence the job for as long as it was wrong.
    """
    first = {job.pk: slot for job in jobs if (slot := _slot_before_plan(job, now))}
    if not first:
        return {}
    schedules = {job.pk: (schedule_of(job), job.next_run_at) for job in jobs if job.pk in first}
    rows = RunLog.objects.using(engine.using).filter(job__in=first, scheduled_for__gt=now)
    decided = rows.order_by("job_id", "scheduled_for").values_list("job_id", "scheduled_for")
    for pk, of_job in groupby(decided, key=itemgetter(0)):
        schedule, planned = schedules[pk]
        slot = _behind(schedule, first.pop(pk), (at for _, at in of_job))
        if slot is not None and slot < planned:
            first[pk] = slot
    return first


def _slot_before_plan(job: Job, now: datetime) -> datetime | None:
    try:
        schedule = schedule_of(job)
        slot = schedule.next_after(slots_begin(job, now)) if schedule.period is None else None
    except (ConfigurationError, ValueError, OverflowError):
        return None
    return slot if slot and job.next_run_at and slot < job.next_run_at else None


def _behind(schedule: Schedule, slot: datetime, decided: Iterable[datetime]) -> datetime | None:
    """Return the first slot from `slot` on that is none of those decided, which come in order."""
    at: datetime | None = slot
    for one in decided:
        if at == one:
            at = schedule.next_after(one)
    return at
