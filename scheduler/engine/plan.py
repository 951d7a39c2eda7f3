"""Plan: what comes next for a job, as a value, and what each event makes of it. Asks neither a database nor a clock.

What stops a job and how it ended last is read from its row; what only the database can tell is given, as `Known`.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, NamedTuple, Self

from scheduler.engine.plan_basis import (
    BEGINNING,
    beginning,
    end_of_backoff,
    is_planned_elsewhere,
    jitter_of,
    last_decided,
    last_instant,
    may_run,
    noted_basis,
    policy_of,
    probe_from,
    schedule_of,
    slot_behind,
    slots_begin,
)
from scheduler.models import AT_ONCE, Job
from scheduler.models.job_columns import GOES_ON_FROM, NO_PLAN, to_replan
from scheduler.policy import Policy
from scheduler.policy.misfire import RESOLUTION, Passed, passed_slots
from scheduler.policy.overlap import Overlap, is_free, queues
from scheduler.schedules import Schedule, Slots

Ends = Mapping[str, Mapping[bool, Any]]


class Plan(NamedTuple):
    """The columns of a job by which it is planned; see there."""

    anchor_at: datetime | None = None
    replan_from: datetime | None = None
    next_run_at: datetime | None = None
    wake_at: datetime | None = AT_ONCE
    stale: bool = True
    plan_basis: str = ""
    last_slot: datetime | None = None

    @classmethod
    def of(cls, job: Job) -> Self:
        """Return the plan of a job as its row has it."""
        plan = job.anchor_at, job.replan_from, job.next_run_at, job.wake_at, job.stale, job.plan_basis, job.last_slot
        return cls(*plan)

    def going_on(self, slot: datetime | None, wake_at: datetime | None) -> Self:
        """Replace the two: faster than `_replace`, at each claim and each end."""
        return type(self)(self[0], self[1], slot, wake_at, *self[4:])

    def onto(self, job: Job) -> None:
        """Give a job this plan, in memory."""
        job.anchor_at, job.replan_from, job.next_run_at, job.wake_at = self[:4]
        job.stale, job.plan_basis, job.last_slot = self[4:]


class Known(NamedTuple):
    """What only the database can tell: how many runs a job has `left` (None: any number), and of the jobs that it waits
    for when each last succeeded (True), and when it last ended, by their names."""

    left: int | None = None
    ends: Ends = {}


class End(NamedTuple):
    """The end of a run at `at` that kept slots after `claimed_for` from starting. `counts`: it came from the plan;
    `ran`: its task was called; `died`: with its process."""

    at: datetime
    claimed_for: datetime
    counts: bool = True
    ran: bool = True
    failed: bool = False
    died: bool = False


def stale(plan: Plan, since: datetime | None, *, wake_at: datetime | None = AT_ONCE) -> Plan:
    """Have the plan made again: from `since`, where it drops no slot, else from the moment of that on."""
    return plan._replace(**to_replan(since, wake_at=wake_at))


def orphaned(plan: Plan, job: Job) -> Plan:
    """Keep from where to go on when the task returns."""
    goes_on = plan._asdict() | {"paused_until": job.paused_until}
    return stale(plan, next(filter(None, (goes_on[name] for name in GOES_ON_FROM)), None), wake_at=None)


def planned(plan: Plan, job: Job, now: datetime, known: Known, *, since: datetime | None = None) -> Plan:
    """Plan a job: from now on, or `since` an instant without leaving a slot out.

    That is for the end of a pause, which may have been noticed late. A stopped job (disabled, orphaned, invalid,
    broken, paused) has no next slot; a pause with an end is looked at again when it ends, and a broken job may have a
    probe. What the plan is made from is noted beside it.
    """
    begin, included = (now, False) if since is None else (min(since, now), True)
    plan = plan._replace(**NO_PLAN, anchor_at=_anchor(plan, job, now))
    if not job.enabled or job.orphaned_at or job.is_set_aside:
        pass
    elif job.paused_at:
        plan = plan._replace(wake_at=job.paused_until)
    elif job.broken_at:
        plan = probed(plan, job, begin, known, included=included)
    else:
        # A pause that ends is no reason to forget the backoff, nor is the end of a job that this one waits for.
        goes_on = since is not None or job.schedule.is_dependent
        slot = first_slot(plan, job, begin, included=included, ends=known.ends)
        plan = with_slot(plan, job, slot, left=known.left, not_before=end_of_backoff(job) if goes_on else None)
    return plan._replace(plan_basis=str(noted_basis(job, plan.last_slot)))


def probed(plan: Plan, job: Job, now: datetime, known: Known, *, included: bool = False) -> Plan:
    """Plan the half-open run of a broken job: its first slot once `breaker_probe_after` is over, if it has one."""
    slot = first_slot(plan, job, now, included=included, ends=known.ends) if probe_from(job) else None
    return with_slot(plan, job, slot, left=known.left, not_before=slots_begin(job, now))


def decided(
    plan: Plan, job: Job, slot: datetime | None, now: datetime, *, left: int | None = None, goes_on: bool = True
) -> Plan:
    """Go on behind the slots up to `slot`, which have their rows; a run that decides on the next one goes on itself.

    A plan of another zone goes on in ours, and that is noted.
    """
    plan = plan._replace(last_slot=slot)
    if not goes_on:
        return with_slot(plan, job, None)
    if is_planned_elsewhere(job):
        slot, plan = last_decided(job, slot), plan._replace(plan_basis=str(noted_basis(job, slot)))
    following = slot_behind(schedule_of(job, anchor_at=plan.anchor_at), slot, now) if slot else None
    return with_slot(plan, job, following, left=left)


def ended(plan: Plan, job: Job, end: End, known: Known) -> tuple[Plan, Passed | None]:
    """Plan on after a run, and tell which slots passed while it kept them from starting."""
    if plan.stale or _is_stopped(job):
        return plan, None
    if job.broken_at and end.counts:
        return probed(plan, job, end.at, known), None
    schedule, passed = schedule_of(job, anchor_at=plan.anchor_at), None
    if schedule.is_dependent:
        return with_slot(plan, job, plan.next_run_at, left=known.left, not_before=end_of_backoff(job)), None
    plan = _with_slot_left_open(plan, job, schedule, end)
    not_before = plan.wake_at if end.died else _earliest_start(plan, job, end)
    if not end.died and (passed := _kept_waiting(plan, job, schedule, end)):
        following = slot_behind(schedule, passed.newest, end.at)
        plan = plan._replace(last_slot=passed.newest, next_run_at=following)
    slot = schedule.next_after(end.at) if _counts_on(job, schedule, end) else plan.next_run_at
    return with_slot(plan, job, slot, left=known.left, not_before=not_before), passed


def released(
    plan: Plan, job: Job, slot: datetime | None, before: datetime | None, *, same_slots: bool, left: int | None = None
) -> Plan:
    """Take back a claim: `slot` is due again, and `before` the last one decided; without `slot` the plan stays.
    `same_slots`: the schedule is still the one of the claim."""
    due = plan.replan_from or plan.next_run_at
    if slot is not None:
        plan, due = plan._replace(last_slot=before), min(slot, due or slot)
    if plan.stale or job.is_set_aside:  # planned again at the next tick, or once it is changed; then it goes on there
        return plan._replace(replan_from=due) if slot and _keeps_slot(plan, job, same_slots) else plan
    if not may_run(job):
        return plan
    return with_slot(plan, job, due, left=left, not_before=end_of_backoff(job) if slot else plan.wake_at)


def clock_back(plan: Plan, job: Job, now: datetime, *, undecided: datetime | None, left: int | None = None) -> Plan:
    """Move a plan to where the right clock has it, if that is earlier.

    `undecided` is the first slot of a fixed time that the ledger has not decided, if it is before the plan.
    """
    schedule = schedule_of(job, anchor_at=plan.anchor_at)
    slot = _slot_by(job, schedule, undecided, now)
    if _is_before(slot, plan.next_run_at):
        anchor = plan.anchor_at if schedule.period is None else beginning(job, now)
        moved = with_slot(plan._replace(anchor_at=anchor), job, slot, left=left, not_before=end_of_backoff(job))
        return moved if plan.last_slot and plan.last_slot <= now else moved._replace(last_slot=None)
    # The slot is right; a start that the wrong clock put off until after an end is not.
    moved = with_slot(plan, job, plan.next_run_at, left=left, not_before=end_of_backoff(job))
    return moved if _is_before(moved.wake_at, plan.wake_at) else plan


def with_slot(
    plan: Plan, job: Job, slot: datetime | None, *, left: int | None = None, not_before: datetime | None = None
) -> Plan:
    """Make `slot` the next one, unless the job has had its last. While the job is busy it does not wake: the end of
    its run plans on."""
    policy = policy_of(job)
    if slot is None or _is_over(policy, slot, left):
        return plan.going_on(None, None)
    if job.orphaned_at or not _is_free(job, policy):
        return plan.going_on(slot, None)
    held_until = None if _is_free(job, policy, besides=1) else job.postponed_until
    start = slot + jitter_of(job, slot, anchor_at=plan.anchor_at)
    return plan.going_on(slot, max(filter(None, (start, not_before, held_until))))


def first_slot(plan: Plan, job: Job, begin: datetime, *, included: bool, ends: Ends | None = None) -> datetime | None:
    """Return the first slot after `begin`, or at it where that is `included`, that was never claimed.

    None is before `starts_at`; one that lies alone may be older than `begin`.
    """
    schedule = schedule_of(job, anchor_at=plan.anchor_at)
    if schedule.slots in (Slots.ONE, Slots.DEPENDENT):
        return _lone_slot(plan, job, schedule, ends or {})
    after = slots_begin(job, begin - RESOLUTION if included else begin)
    if schedule.from_completion:
        return _from_completion(plan, job, schedule, begin, after)
    return schedule.next_after(max(after, last_decided(job, plan.last_slot) or after))


def missing_parents(plan: Plan, schedule: Schedule, ends: Ends) -> tuple[str, ...]:
    """Return the jobs that have not ended as the schedule wants since the last slot.

    What they did before the anchor, when the job was enabled or given this schedule, does not count.
    """
    since = max(filter(None, (plan.last_slot, plan.anchor_at)), default=None)
    found = {name: ends[name][schedule.after_success] if name in ends else None for name in schedule.parents}
    return tuple(name for name, at in found.items() if at is None or (since and at <= since))


def _anchor(plan: Plan, job: Job, now: datetime) -> datetime | None:
    """Keep the anchor while the job is enabled. One in the future was set by the clock of another host."""
    if not job.enabled:
        return None
    if plan.anchor_at is None or (plan.anchor_at > now and job.schedule.is_dependent):
        return beginning(job, now)
    return plan.anchor_at


def _lone_slot(plan: Plan, job: Job, schedule: Schedule, ends: Ends) -> datetime | None:
    slot = _slot_after(plan, schedule, ends) if schedule.is_dependent else schedule.next_after(BEGINNING)
    starts_at = policy_of(job).starts_at
    return None if slot and (slot == last_decided(job, plan.last_slot) or (starts_at and slot < starts_at)) else slot


def _slot_after(plan: Plan, schedule: Schedule, ends: Ends) -> datetime | None:
    """Return when the last parent ended, if each ended as it must since the last slot; None while one is missing."""
    if missing_parents(plan, schedule, ends):
        return None
    last: datetime = max(ends[name][schedule.after_success] for name in schedule.parents)
    return last


def _from_completion(plan: Plan, job: Job, schedule: Schedule, begin: datetime, after: datetime) -> datetime | None:
    """Return the slot that is counted from the last end, or from the anchor; from now on if it has passed by then."""
    counted = schedule.next_after(max(filter(None, (plan.anchor_at, job.last_finished_at)), default=begin))
    if counted and counted > after:
        return counted
    return schedule.next_after(max(begin, after, policy_of(job).starts_at or begin))


def _with_slot_left_open(plan: Plan, job: Job, schedule: Schedule, end: End) -> Plan:
    """Name the next slot where the run decides on it: counted from completion, that of its last attempt too, or after
    the last of `max_runs`, which is not used up by a run that was skipped."""
    is_open = plan.next_run_at is None and not job.broken_at
    if schedule.from_completion and (end.counts or is_open):
        return plan._replace(next_run_at=schedule.next_after(end.at))
    if is_open and plan.last_slot is not None and policy_of(job).max_runs is not None:
        return plan._replace(next_run_at=schedule.next_after(plan.last_slot))
    return plan


def _counts_on(job: Job, schedule: Schedule, end: End) -> bool:
    """Whether the next slot is counted from the end of this run, whatever started it."""
    return schedule.from_completion and end.ran and not job.broken_at


def _keeps_slot(plan: Plan, job: Job, same_slots: bool) -> bool:
    """Whether a plan that is to be made again goes on at a slot that was given back."""
    return not plan.stale or (same_slots and not job.paused_at)


def _is_stopped(job: Job) -> bool:
    return bool(not job.enabled or job.paused_at or job.orphaned_at or job.is_set_aside)


def _kept_waiting(plan: Plan, job: Job, schedule: Schedule, end: End) -> Passed | None:
    """Return the slots that a run kept from starting, and that must not follow it.

    A slot that was due before the run began (it is being caught up, or a run by hand came first) was not kept by it:
    the misfire policy decides on that one and those after it. A postponed attempt counts its own.
    """
    policy, first = policy_of(job), plan.next_run_at
    if queues(policy.overlap) or first is None or not end.claimed_for < first <= end.at:
        return None
    is_held = job.postponed_until is not None
    was_busy = not is_free(policy.overlap, job.active_runs + 1 + is_held, policy.max_concurrent)
    waited = plan.wake_at is None or plan.wake_at <= end.at
    if not (was_busy and waited) or (is_held and not is_free(policy.overlap, 1, policy.max_concurrent)):
        return None
    return passed_slots(schedule, first, last_instant(job, end.at))


def _earliest_start(plan: Plan, job: Job, end: End) -> datetime:
    """A slot that waited for the run to end is not late; after a failure the backoff comes first. A run beside the plan
    leaves it as it is, with the backoff of an earlier failure."""
    if not end.counts:
        return max(end.at, plan.wake_at or end.at)
    return end.at + policy_of(job).backoff.step(job.consecutive_failures) if end.failed else end.at


def _is_free(job: Job, policy: Policy, *, besides: int = 0) -> bool:
    """Whether a slot may start, `besides` an attempt that put itself off and holds a place."""
    taken = job.active_runs + besides
    return policy.overlap is Overlap.REPLACE or is_free(policy.overlap, taken, policy.max_concurrent)


def _is_over(policy: Policy, slot: datetime, left: int | None) -> bool:
    """Whether the job has had its last slot: `ends_at` has passed, or `max_runs` are done, going on or promised."""
    return bool(policy.ends_at and slot > policy.ends_at) or (left is not None and left <= 0)


def _slot_by(job: Job, schedule: Schedule, undecided: datetime | None, now: datetime) -> datetime | None:
    """Return the next slot of a job by the clock that says `now`."""
    if schedule.is_dependent:
        return slots_begin(job, now) + RESOLUTION  # its parents have ended by now
    if schedule.period is None:
        return undecided
    first = job.schedule.next_after(slots_begin(job, now))  # on the grid that its schedule names, not on the job's
    return None if first is None else max(first, now + schedule.period)


def _is_before(one: datetime | None, other: datetime | None) -> bool:
    return one is not None and other is not None and one < other
