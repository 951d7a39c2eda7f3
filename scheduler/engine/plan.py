"""Plan: the next slot of a job and its planned start. Changes the job in memory only."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import lru_cache

from django.conf import settings
from django.db.models import F

from scheduler.conf import conf
from scheduler.engine.dependencies import slot_after_parents
from scheduler.engine.grid import beginning
from scheduler.exceptions import InvalidSchedule
from scheduler.models import UNPLANNED, Job, RunLog
from scheduler.models.fields import Unreadable
from scheduler.policy import Policy
from scheduler.policy.jitter import delay
from scheduler.policy.misfire import RESOLUTION
from scheduler.policy.overlap import Overlap, is_free
from scheduler.schedules import AfterJobs, OnActivity, Schedule

BEGINNING = datetime.min.replace(tzinfo=UTC)


def schedule_of(job: Job) -> Schedule:
    """Return the schedule of a job with its anchor and time zone; raises InvalidSchedule when it cannot be read."""
    schedule = job.schedule
    if isinstance(schedule, Unreadable):
        raise InvalidSchedule(schedule.error)
    return _bound(schedule, job.anchor_at, settings.TIME_ZONE)


@lru_cache(maxsize=4096)
def _bound(schedule: Schedule, anchor: datetime | None, timezone: str) -> Schedule:
    return schedule.bind(anchor=anchor, timezone=timezone)


def policy_of(job: Job) -> Policy:
    """Return the policies of a job; raises InvalidSchedule when they cannot be read."""
    policy: Policy | Unreadable = job.policy
    if isinstance(policy, Unreadable):
        raise InvalidSchedule(policy.error, field="policy")
    return _for_users(policy, job.schedule) if isinstance(job.schedule, OnActivity) else policy


def _for_users(policy: Policy, schedule: OnActivity) -> Policy:
    """Return the policies of a job that has a run for each user: they go on side by side, as long as it says."""
    most = policy.max_concurrent if policy.overlap is Overlap.ALLOW else conf.MAX_CONCURRENT
    return replace(policy, overlap=Overlap.ALLOW, max_concurrent=most, timeout=schedule.timeout)


def replan(job: Job, now: datetime, *, since: datetime | None = None) -> None:
    """Plan a job afresh: the first slot after `now` that was never claimed, never one in the past.

    After a pause it is planned from its end on, `since`, that instant included: nobody may have seen the end in time.
    A stopped job (disabled, orphaned, invalid, broken, paused) has no next slot; a pause with an end is looked at
    again when it ends, and a broken job may have a probe.
    """
    begin, included = (now, False) if since is None else (min(since, now), True)
    job.next_run_at = job.next_start_at = None
    if not job.enabled:
        job.anchor_at = None
        return
    if job.anchor_at is None or (job.anchor_at > now and isinstance(job.schedule, AfterJobs)):
        job.anchor_at = beginning(job, now)  # one that is still to come was set by the clock of somebody else
    if job.orphaned_at or job.problem:
        return
    if job.paused_at:
        job.next_start_at = job.paused_until
    elif job.broken_at:
        plan_probe(job, begin, included=included)
    else:
        # A pause that ends is no reason to forget the backoff, nor is the end of a job that this one waits for.
        goes_on = since is not None or isinstance(job.schedule, AfterJobs)
        waits_until = end_of_backoff(job) if goes_on else None
        set_next(job, first_slot(job, begin, included=included), not_before=waits_until)


def plan_probe(job: Job, now: datetime, *, included: bool = False) -> None:
    """Plan the half-open run of a broken job: its first slot once `breaker_probe_after` is over, if it has one."""
    slot = first_slot(job, now, included=included) if probe_from(job) else None
    set_next(job, slot, not_before=slots_begin(job, now))


def probe_from(job: Job) -> datetime | None:
    """Return from when on a broken job may be probed; None when it is not broken, or waits for a person."""
    if job.broken_at is None or not (wait := policy_of(job).breaker_probe_after):
        return None
    last_end: datetime = job.last_finished_at or job.broken_at
    return last_end + wait


def slots_begin(job: Job, now: datetime) -> datetime:
    """Return after which instant the next slot of a job may lie: now, or as late as `starts_at` or its probe."""
    policy, begin = policy_of(job), now
    if policy.starts_at is not None and policy.starts_at > begin:
        begin = policy.starts_at - RESOLUTION
    return max(begin, probe_from(job) or begin)


def first_slot(job: Job, begin: datetime, *, included: bool) -> datetime | None:
    """Return the first slot after `begin`, or at it where that is `included`, that was never claimed.

    None is before `starts_at`; one that lies alone may be older than `begin`.
    """
    schedule, starts_at = schedule_of(job), policy_of(job).starts_at
    if isinstance(schedule, AfterJobs) or schedule.kind == "once":
        slot = _lone_slot(job, schedule)
        return None if slot and starts_at and slot < starts_at else slot
    after = slots_begin(job, begin - RESOLUTION if included else begin)
    if schedule.from_completion:
        planned = schedule.next_after(max(filter(None, (job.anchor_at, job.last_finished_at)), default=begin))
        return planned if planned and planned > after else schedule.next_after(max(begin, after, starts_at or begin))
    return schedule.next_after(max(after, job.last_slot or after))


def _lone_slot(job: Job, schedule: Schedule) -> datetime | None:
    if isinstance(schedule, AfterJobs):
        return slot_after_parents(job, schedule)
    at = schedule.next_after(BEGINNING)
    return None if at == job.last_slot else at


def slot_behind(schedule: Schedule, slot: datetime, now: datetime) -> datetime | None:
    """Return the slot that follows one that was decided without a run.

    Counted from completion there is no grid of slots that have passed, so the next one is counted from now.
    """
    return schedule.next_after(max(slot, now) if schedule.from_completion else slot)


def set_next(job: Job, slot: datetime | None, *, not_before: datetime | None = None, promised: int = 0) -> None:
    """Make `slot` the next one of the job, of which `promised` attempts are about to be written.

    While the job is busy it is not due: the end of its run plans on. Nor is an orphan, until its task returns.
    """
    policy = policy_of(job)
    if slot is not None and _is_over(job, policy, slot, promised):
        slot = None
    job.next_run_at = slot
    waits = policy.overlap is not Overlap.REPLACE and not is_free(
        policy.overlap, job.active_runs, policy.max_concurrent
    )
    if slot is None or waits or job.orphaned_at:
        job.next_start_at = None
        return
    start = slot + jitter_of(job, slot)
    job.next_start_at = start if not_before is None else max(start, not_before)


def end_of_backoff(job: Job) -> datetime | None:
    """Return until when the job waits after the failures of its schedule; None when its last run was no failure."""
    if not job.consecutive_failures or job.last_finished_at is None:
        return None
    end: datetime = job.last_finished_at + policy_of(job).backoff.step(job.consecutive_failures)
    return end


def last_instant(job: Job, now: datetime) -> datetime:
    """Return `now`, or `ends_at` when that has passed: later slots are none of the job's."""
    ends_at = policy_of(job).ends_at
    return now if ends_at is None else min(now, ends_at)


def _is_over(job: Job, policy: Policy, slot: datetime, promised: int) -> bool:
    """Whether the job has had its last slot: `ends_at` has passed, or `max_runs` are done, going on or promised."""
    if policy.ends_at is not None and slot > policy.ends_at:
        return True
    if policy.max_runs is None:
        return False
    left = policy.max_runs - job.ended_runs - job.active_runs - promised
    return left <= 0 or left <= waiting_attempts(job)


def waiting_attempts(job: Job) -> int:
    """Count the attempts that are promised already.

    Some databases would search all rows of the job; by a sum they cannot, and take the few runs that are open.
    """
    waiting = RunLog.objects.using(job._state.db).waiting().filter(due_at__gt=UNPLANNED)
    return waiting.annotate(owner=F("job_id") + 0).filter(owner=job.pk).count()


def jitter_of(job: Job, slot: datetime) -> timedelta:
    """Return how long after its slot the job starts."""
    schedule = schedule_of(job)
    if not schedule.jitter:
        return timedelta(0)
    return delay(job.name, slot, schedule.jitter, schedule.next_after(slot))
