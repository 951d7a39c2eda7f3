"""Basis: what a plan is made from. It is noted beside the plan, so that a change that no code of ours made is seen."""

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any
from zlib import crc32

from django.conf import settings

from scheduler.conf import conf
from scheduler.exceptions import InvalidSchedule
from scheduler.models import LONG_AGO, Job
from scheduler.models.stored import Unreadable, write_schedule
from scheduler.policy import Policy
from scheduler.policy.codec import to_json
from scheduler.policy.jitter import delay
from scheduler.policy.misfire import RESOLUTION
from scheduler.policy.overlap import Overlap
from scheduler.schedules import OnActivity, Schedule, Slots
from scheduler.schedules.base import naive_utc
from scheduler.schedules.wallclock import instant_of, local, zone_of

BEGINNING = datetime.min.replace(tzinfo=UTC)
EPOCH = LONG_AGO  # 1970-01-01 00:00 UTC, from which Temporal counts intervals, too
EPOCH_DIGITS = 10
"""Seconds until the year 2286; the column has room for so many beside the longest zone."""


@dataclass(frozen=True, slots=True)
class Basis:
    """Hashes of what decides on the slots (schedule, enabled) and on their starts (policies, task), and the zone.

    `zone` is the TIME_ZONE of the project where the schedule follows it, else empty. `decided`: up to where its slots
    have had their run in another zone.
    """

    slots: str
    starts: str
    zone: str
    decided: datetime | None = field(default=None, compare=False)

    def __str__(self) -> str:
        decided = f".{int(self.decided.timestamp())}" if self.decided else ""
        return f"{self.slots}.{self.starts}{decided} {self.zone}".rstrip()


def schedule_of(job: Job, timezone: str | None = None, *, anchor_at: datetime | None = None) -> Schedule:
    """Return the schedule of a job with its anchor and time zone, the project's unless it names one or one is given.

    Raises InvalidSchedule when it cannot be read.
    """
    schedule = job.schedule
    if isinstance(schedule, Unreadable):
        raise InvalidSchedule(schedule.error)
    return _bound(schedule, anchor_at or job.anchor_at, timezone or settings.TIME_ZONE)


def policy_of(job: Job) -> Policy:
    """Return the policies of a job; raises InvalidSchedule when they cannot be read."""
    policy: Policy | Unreadable = job.policy
    if isinstance(policy, Unreadable):
        raise InvalidSchedule(policy.error, field="policy")
    return _for_users(policy, job.schedule) if job.schedule.for_users else policy


@lru_cache(maxsize=4096)
def _bound(schedule: Schedule, anchor: datetime | None, timezone: str) -> Schedule:
    return schedule.bind(anchor=anchor, timezone=timezone)


def _for_users(policy: Policy, schedule: OnActivity) -> Policy:
    """Return the policies of a job that has a run for each user: they go on side by side, as long as it says."""
    most = policy.max_concurrent if policy.overlap is Overlap.ALLOW else conf.MAX_CONCURRENT
    return replace(policy, overlap=Overlap.ALLOW, max_concurrent=most, timeout=schedule.timeout)


def basis_of(job: Job) -> Basis:
    """Return what a plan of the job is made from as it stands."""
    return _basis(job.schedule, job.policy, bool(job.enabled), job.task, settings.TIME_ZONE)


def basis_of_plan(job: Job) -> Basis | None:
    """Return what the plan of the job was made from; None where that is not known."""
    hashes, _, zone = job.plan_basis.partition(" ")
    slots, _, starts = hashes.partition(".")
    starts, _, decided = starts.partition(".")
    at = datetime.fromtimestamp(int(decided), UTC) if decided.isdecimal() and len(decided) <= EPOCH_DIGITS else None
    return Basis(slots, starts, zone, at) if starts else None


def is_known(job: Job) -> bool:
    """Whether the job was planned before by the slots that its definition has now."""
    before = basis_of_plan(job)
    return before is not None and before.slots == basis_of(job).slots


def is_planned_elsewhere(job: Job) -> bool:
    """Whether the plan was made by the same definition in another zone of the project."""
    _, _, zone = job.plan_basis.partition(" ")
    return bool(zone) and zone != settings.TIME_ZONE and is_known(job)


def noted_basis(job: Job, last_slot: datetime | None) -> Basis:
    """Return the basis to note beside a new plan: it keeps how far another zone has decided the slots."""
    decided, basis = last_decided(job, last_slot), basis_of(job)
    return basis if decided == last_slot else replace(basis, decided=decided)


def last_decided(job: Job, slot: datetime | None) -> datetime | None:
    """Return the last claimed slot; of a fixed time that was planned in another zone, its wall time in today's zone.

    The job has run for 09:00 of a day: 09:00 of that day in the new zone, some hours later, is the same slot. So is the
    only slot of a wall time, earlier or later.
    """
    if slot is None:
        return None
    before, basis = basis_of_plan(job), basis_of(job)
    if before is None or before.slots != basis.slots:
        return slot
    if before.zone and job.schedule.slots is Slots.ONE:
        return _only_slot(job.schedule, before, basis, slot)
    decided = max(slot, before.decided or slot)
    if not _is_fixed_time_elsewhere(job.schedule, before, basis):
        return decided
    try:
        wall = local(zone_of(before.zone), naive_utc(decided)).replace(tzinfo=None)
        return max(slot, instant_of(zone_of(basis.zone), wall).replace(tzinfo=UTC))
    except (InvalidSchedule, OverflowError):  # a zone that this host does not know
        return slot


def _only_slot(schedule: Schedule, before: Basis, basis: Basis, slot: datetime) -> datetime:
    """Return the only slot of a wall time in today's zone if it has been decided in the zone before, else `slot`."""
    try:
        had, has = (_bound(schedule, None, zone).next_after(BEGINNING) for zone in (before.zone, basis.zone))
    except InvalidSchedule:  # a zone that this host does not know
        return slot
    decided = before.decided or slot  # noted in whole seconds
    return has if had and has and int(had.timestamp()) == int(decided.timestamp()) else slot


def _is_fixed_time_elsewhere(schedule: Any, before: Basis, basis: Basis) -> bool:
    moved = before.zone and basis.zone and before.zone != basis.zone
    return bool(moved) and before.slots == basis.slots and isinstance(schedule, Schedule) and schedule.is_fixed_time


@lru_cache(maxsize=4096)
def _basis(schedule: Schedule | Unreadable, policy: Any, enabled: bool, task: str, timezone: str) -> Basis:
    text = schedule.text if isinstance(schedule, Unreadable) else write_schedule(schedule)
    policies = policy.text if isinstance(policy, Unreadable) else to_json(policy)
    return Basis(_short(f"{enabled} {text}"), _short(f"{task} {policies}"), timezone if _follows(schedule) else "")


def _short(text: str) -> str:
    return f"{crc32(text.encode()):08x}"


def _follows(schedule: Schedule | Unreadable) -> bool:
    """Whether the slots depend on the zone of the project."""
    return isinstance(schedule, Schedule) and schedule.follows_timezone


def may_run(job: Job, *, at: datetime | None = None) -> bool:
    """Return whether the schedule of a job may start it: enabled, not stopped, or due for its probe.

    A slot that is planned for a broken job is that of its probe; an attempt that was promised before may be due too
    early for one.
    """
    probe_at = probe_from(job)
    probing = probe_at is not None and (at is None or at >= probe_at)
    return job.enabled and not (is_paused(job, at=at) or job.orphaned_at or (job.broken_at and not probing))


def is_paused(job: Job, *, at: datetime | None = None) -> bool:
    """Return whether a pause of its own stops a job; not one that is over by `at`, even if no process has ended it."""
    is_over = at is not None and job.paused_until is not None and job.paused_until <= at
    return job.paused_at is not None and not is_over


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


def end_of_backoff(job: Job) -> datetime | None:
    """Return until when the job waits after the failures of its schedule; None when its last run was no failure."""
    if not job.consecutive_failures or job.last_finished_at is None:
        return None
    end: datetime = job.last_finished_at + policy_of(job).backoff.step(job.consecutive_failures)
    return end


def last_instant(job: Job, now: datetime) -> datetime:
    """Return `now`, or `ends_at` when that has passed: the job has no later slots."""
    return min(now, policy_of(job).ends_at or now)


def jitter_of(job: Job, slot: datetime, *, anchor_at: datetime | None = None) -> timedelta:
    """Return how long after its slot the job starts."""
    if not (isinstance(job.schedule, Unreadable) or job.schedule.jitter):
        return timedelta(0)
    schedule = schedule_of(job, anchor_at=anchor_at)
    return delay(job.name, slot, schedule.jitter, schedule.next_after(slot))


def beginning(job: Job, now: datetime) -> datetime:
    """Return the anchor of a job that begins now; of one that was never planned, the end of an earlier run by hand.

    Databases that share a lock must agree on the slots of an interval, or each would run its own: they count from one
    instant that all of them know.
    """
    if job.schedule.from_completion and not job.plan_basis:
        return min(now, job.last_finished_at or now)
    return EPOCH if has_grid(job) and conf.LOCK_URL else now


def has_grid(job: Job) -> bool:
    """Return whether the slots of a job are counted from its anchor."""
    return job.schedule.is_interval and not job.schedule.from_completion


def is_beginning(job: Job, instant: datetime | None) -> bool:
    """Return whether the slots of an interval are counted from an instant: the first one is an interval later."""
    return instant is not None and instant == job.anchor_at and has_grid(job) and not job.schedule.has_grid


def slot_behind(schedule: Schedule, slot: datetime, now: datetime) -> datetime | None:
    """Return the slot that follows one that was decided without a run.

    Counted from completion there is no grid of slots that have passed, so the next one is counted from now.
    """
    return schedule.next_after(max(slot, now) if schedule.from_completion else slot)
