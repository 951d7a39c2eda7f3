"""Clock step: after the clock was set back, plans made by the wrong clock would wait until it catches up."""

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from itertools import groupby
from operator import itemgetter

from django.db.models import F, Q

from scheduler.conf import conf
from scheduler.engine.base import Engine
from scheduler.engine.db.bulk import LostRace, update_rows
from scheduler.engine.db.transactions import write_transaction
from scheduler.engine.events import SCHEDULER, event, write_events
from scheduler.engine.mend.promises import hurry_promises
from scheduler.engine.plan import Plan, clock_back
from scheduler.engine.plan_basis import schedule_of, slots_begin
from scheduler.engine.replan import asked_at_once, runs_left
from scheduler.exceptions import ConfigurationError
from scheduler.models import Activity, EntryState, EventKind, Instance, Job, RunLog
from scheduler.models.primary import locked
from scheduler.schedules import Schedule, dependent_kinds, interval_kinds

TOLERANCE = timedelta(seconds=5)
JOBS_AT_ONCE = 200
COLUMNS = ("version", "anchor_at", "last_slot", "next_run_at", "wake_at")


def was_set_back(engine: Engine, tell_time: Callable[[], datetime]) -> bool:
    """Return whether slots or heartbeats lie in the future: the clock was set back while no process was watching.

    The clock is read after them: others go on while this process stands still, and that is no step back.
    """
    # No maximum: on SQLite its value would not be read as that of the column is.
    slots = Job.objects.using(engine.using).filter(last_slot__isnull=False).order_by("-last_slot")
    heartbeats = Instance.objects.using(engine.using).order_by("-heartbeat_at")
    found = [
        slots.values_list("last_slot", flat=True).first(),
        heartbeats.values_list("heartbeat_at", flat=True).first(),
    ]
    newest: datetime | None = max(filter(None, found), default=None)
    return newest is not None and newest > tell_time() + TOLERANCE


def clock_moved_back(engine: Engine, now: datetime) -> int:
    """Plan jobs whose next slot or start is later than their schedule says; returns how many.

    An interval goes on within one interval, on a grid that begins now: the old grid's slots have been run. A fixed time
    takes its first slot that the ledger has not decided yet, so that nothing is repeated. Jobs whose run is going on
    stay busy; what they do next is moved all the same. A few jobs at a time: heartbeats must not wait for all of them.
    """
    with write_transaction(engine.using):
        _forget_the_future(engine, now)
        write_events(engine.using, [event(None, EventKind.CLOCK_BACK, now, actor=SCHEDULER)])
    hurry_promises(engine, now)
    later = Q(next_run_at__gt=now) | Q(next_run_at__isnull=False, wake_at__gt=now)
    planned = Job.objects.using(engine.using).filter(later).order_by("pk")
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
        jobs.filter(schedule_kind__in=dependent_kinds(), **{f"{column}__gt": now}).update(**{column: now})
    unplanned = jobs.filter(next_run_at__isnull=True, last_slot__gt=now)
    grid = {} if conf.LOCK_URL else {"anchor_at": now}  # shared with other databases, else a new one
    unplanned.filter(schedule_kind__in=interval_kinds()).update(last_slot=None, **grid)  # plans begin behind it
    Instance.objects.using(engine.using).filter(heartbeat_at__gt=now).update(heartbeat_at=now)
    _hurry_users(engine, now)


def _hurry_users(engine: Engine, now: datetime) -> None:
    """Users who became active by the wrong clock are due now, but for those that a request is just writing of."""
    entries = Activity.objects.using(engine.using).filter(created_at__gt=now)
    pending = entries.filter(state=EntryState.PENDING, wake_at__gt=now)
    ids = list(locked(pending, skip_locked=True).values_list("pk", flat=True))
    pending.filter(pk__in=ids).update(created_at=now, wake_at=now, version=F("version") + 1)


def _repair(engine: Engine, jobs: Sequence[Job], now: datetime) -> int:
    """Plan jobs again and write those that changed; raises LostRace when another writer has changed one."""
    undecided = _first_undecided(engine, jobs, now)
    with asked_at_once(jobs):
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
    before = Plan.of(job)
    try:
        plan = clock_back(before, job, now, undecided=undecided, left=runs_left(job))
    except (ConfigurationError, ValueError, OverflowError):
        return False  # the tick will say what is wrong with this one
    plan.onto(job)
    return plan != before


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
