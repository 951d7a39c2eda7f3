"""Misfire: what happens to slots found late. One rule for boot, suspend, outages and clock jumps."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from scheduler.schedules import Schedule

RESOLUTION = timedelta(microseconds=1)
MINIMUM_GRACE = timedelta(seconds=60)
CALENDAR_GRACE = timedelta(days=1)


class Misfire(StrEnum):
    """What a job does with slots that were due while nothing ran them."""

    RUN_LATEST = "run_latest"
    """One catch-up run for the newest missed slot; older ones are counted on it."""
    SKIP = "skip"
    """One `missed` row; the next future slot runs."""
    RUN_ALL = "run_all"
    """Every missed slot, oldest first, at most `max_catch_up` of them."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What to do with the slots that are due: run one, write off some.

    `run` is the slot to start now, `catch_up` whether it is past its grace, `coalesced` how many older slots are
    counted on it (the oldest is `coalesced_from`). `missed` is the newest slot to write off, with `missed_coalesced`
    older ones counted on it, the oldest of which is `missed_from`.
    """

    run: datetime | None = None
    catch_up: bool = False
    coalesced: int = 0
    coalesced_from: datetime | None = None
    missed: datetime | None = None
    missed_coalesced: int = 0
    missed_from: datetime | None = None


def default_grace(schedule: Schedule) -> timedelta:
    """Return the grace of a job that names none: a day for calendar kinds, else the larger of 60 s and one interval."""
    if schedule.is_calendar:
        return CALENDAR_GRACE
    return max(MINIMUM_GRACE, schedule.period or MINIMUM_GRACE)


def judge(
    schedule: Schedule,
    slot: datetime,
    now: datetime,
    *,
    misfire: Misfire,
    late: timedelta,
    grace: timedelta,
    window: timedelta | None,
    max_catch_up: int,
    ends_at: datetime | None = None,
) -> Verdict:
    """Decide what becomes of `slot` and of every later slot up to `now`; constant time in the number of slots.

    `late` is how long after its planned start the slot was found: a start delayed by jitter or backoff is not late.
    There are no slots after `ends_at`.
    """
    newest = latest_slot(schedule, slot, now if ends_at is None else min(now, ends_at))
    if late <= grace and newest == slot:
        return Verdict(run=slot)
    if misfire is Misfire.RUN_ALL:
        return _run_all(schedule, slot, newest, now, grace, window, max_catch_up)
    oldest = grace if misfire is Misfire.SKIP else max(grace, window or timedelta.max)
    if late > grace and now - newest > oldest:
        return _write_off(schedule, slot, newest)
    older = count_slots(schedule, slot, newest) - 1
    if misfire is Misfire.SKIP and older:
        before = schedule.previous_before(newest) or slot
        return Verdict(run=newest, missed=before, missed_coalesced=older - 1, missed_from=slot)
    return Verdict(run=newest, catch_up=late > grace, coalesced=older, coalesced_from=slot if older else None)


def latest_slot(schedule: Schedule, slot: datetime, now: datetime) -> datetime:
    """Return the newest slot that is not after `now`, at least `slot` itself."""
    newest = schedule.previous_before(now + RESOLUTION)
    return slot if newest is None or newest < slot else newest


def count_slots(schedule: Schedule, first: datetime, newest: datetime) -> int:
    """Return how many slots there are from `first` to `newest`: at least `first`, also where there is no grid."""
    return 1 + schedule.count_between(first, newest)


def _write_off(schedule: Schedule, slot: datetime, newest: datetime) -> Verdict:
    count = count_slots(schedule, slot, newest)
    return Verdict(missed=newest, missed_coalesced=count - 1, missed_from=slot if count > 1 else None)


def _run_all(
    schedule: Schedule,
    slot: datetime,
    newest: datetime,
    now: datetime,
    grace: timedelta,
    window: timedelta | None,
    max_catch_up: int,
) -> Verdict:
    """Run the oldest slot that may still be caught up, and write off those before it."""
    oldest = _oldest_to_run(schedule, slot, newest, now, window, max_catch_up)
    if oldest is None:
        return _write_off(schedule, slot, newest)
    catch_up = now - oldest > grace
    if oldest == slot:
        return Verdict(run=oldest, catch_up=catch_up)
    dropped = count_slots(schedule, slot, oldest - RESOLUTION)
    before = schedule.previous_before(oldest) or slot
    return Verdict(run=oldest, catch_up=catch_up, missed=before, missed_coalesced=dropped - 1, missed_from=slot)


def _oldest_to_run(
    schedule: Schedule, slot: datetime, newest: datetime, now: datetime, window: timedelta | None, max_catch_up: int
) -> datetime | None:
    """Return the oldest slot inside the window among the newest `max_catch_up`, or None when all are outside."""
    oldest: datetime | None = None
    at: datetime | None = newest
    for _ in range(max_catch_up):
        if at is None or at < slot or (window is not None and now - at > window):
            break
        oldest, at = at, schedule.previous_before(at)
    return oldest
