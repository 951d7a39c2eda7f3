"""Basis: what a plan is made from. It stands beside the plan, so that a change that no code of ours made is seen."""

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any
from zlib import crc32

from django.conf import settings

from scheduler.conf import conf
from scheduler.exceptions import InvalidSchedule
from scheduler.models import Job
from scheduler.models.fields import Unreadable, write_schedule
from scheduler.policy import Policy
from scheduler.policy.codec import to_json
from scheduler.policy.overlap import Overlap
from scheduler.schedules import OnActivity, Schedule
from scheduler.schedules.base import naive_utc
from scheduler.schedules.wallclock import instant_of, local, zone_of

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
    decided = last_decided(job, last_slot)
    return replace(basis_of(job), decided=decided if decided != last_slot else None)


def last_decided(job: Job, slot: datetime | None) -> datetime | None:
    """Return the last claimed slot; of a fixed time that was planned in another zone, its wall time in today's zone.

    The job has run for 09:00 of a day: 09:00 of that day in the new zone, some hours later, is the same slot.
    """
    before, basis = basis_of_plan(job), basis_of(job)
    if slot is None or before is None or before.slots != basis.slots:
        return slot
    decided = max(slot, before.decided or slot)
    if not _is_fixed_time_elsewhere(job.schedule, before, basis):
        return decided
    try:
        wall = local(zone_of(before.zone), naive_utc(decided)).replace(tzinfo=None)
        return max(slot, instant_of(zone_of(basis.zone), wall).replace(tzinfo=UTC))
    except (InvalidSchedule, OverflowError):  # a zone that this host does not know
        return slot


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
