"""Slots that several databases have: who asks for one, how long it stays taken, how a run ends that may not start."""

from collections.abc import Sequence
from datetime import timedelta

from scheduler.clock import Clock
from scheduler.engine.base import Claimed
from scheduler.engine.outcome import NO_TIME, Outcome
from scheduler.engine.plan_basis import policy_of, schedule_of
from scheduler.executors.call import from_to
from scheduler.models import RunLog, Status, Trigger
from scheduler.policy.misfire import Misfire, grace_of
from scheduler.slot_locks.base import Bid

SHARED = (*Trigger.which("counts"), Trigger.BACKFILL)
"""Triggers whose slots other databases have. A run by hand has a slot of its own, and runs where it was asked for."""
PUT_OFF = "lock: it cannot be asked"
FIRST_DELAY, LONGEST_DELAY = timedelta(seconds=2), timedelta(seconds=15)
DAY = timedelta(days=1)
LONGEST_KEPT = timedelta(days=400)


def bid_for(claimed: Claimed, earlier: Sequence[RunLog]) -> Bid:
    """Return the bid of a claim. What an `earlier` attempt of this database holds passes on to it."""
    run = claimed.run
    return Bid(
        job=claimed.job.name,
        slot=run.scheduled_for,
        owner=_owner(run),
        host=run.worker,
        former=tuple(_owner(attempt) for attempt in earlier),
    )


def _owner(run: RunLog) -> str:
    return f"{run.instance_id}/{run.token}"


def kept_seconds(claimed: Claimed) -> float:
    """Return for how long a slot stays taken after its run: as long as a host that was away could still catch it up.

    That is until later slots come first, and a day more for hosts that hang; at most 400 days.
    """
    slot, policy, schedule = claimed.run.scheduled_for, policy_of(claimed.job), schedule_of(claimed.job)
    count = policy.max_catch_up if policy.misfire is Misfire.RUN_ALL else 1
    later = schedule.upcoming(count, slot)
    span = later[-1] - slot if len(later) == count else LONGEST_KEPT
    return min(max(span, _grace(claimed)) + DAY, LONGEST_KEPT).total_seconds()


def left_to(holder: str, claimed: Claimed, clock: Clock) -> Outcome:
    """Return the end of a run whose slot another host has."""
    return _not_called(claimed, Status.SKIPPED, f"lock: {holder} runs it", clock)


def put_off(claimed: Claimed, earlier: Sequence[RunLog], why: str, clock: Clock) -> Outcome:
    """Return the end of a run whose lock could not be asked: it asks again soon, and gives up after its grace."""
    now = clock.now()
    since = [attempt.finished_at for attempt in earlier if attempt.finished_at and was_put_off(attempt)]
    waited = now - min(since, default=now)
    delay = min(max(waited, FIRST_DELAY), LONGEST_DELAY)
    if waited + delay > _grace(claimed):
        return _not_called(claimed, Status.SKIPPED, f"{PUT_OFF} within its grace: {why}", clock)
    return _not_called(claimed, Status.POSTPONED, f"{PUT_OFF}: {why}", clock, delay)


def was_put_off(attempt: RunLog) -> bool:
    """Return whether an attempt did not start since the lock could not be asked."""
    return attempt.reason.startswith(PUT_OFF)


def _grace(claimed: Claimed) -> timedelta:
    return grace_of(policy_of(claimed.job).grace, schedule_of(claimed.job))


def _not_called(claimed: Claimed, status: Status, reason: str, clock: Clock, delay: timedelta = NO_TIME) -> Outcome:
    started_at, finished_at = from_to(max(clock.now(), claimed.start_at), clock)
    return Outcome(
        status=status,
        started_at=started_at,
        finished_at=finished_at,
        reason=reason[:500],
        postponed_by=delay,
        called=False,
    )
