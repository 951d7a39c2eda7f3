"""Misfire: what happens to slots found late. One rule for boot, suspend, outages and clock jumps."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import NamedTuple

from scheduler.schedules import Schedule

RESOLUTION = timedelta(microseconds=1)
MINIMUM_GRACE = timedelta(seconds=60)
CALENDAR_GRACE = timedelta(days=1)
FOUND_LATE = "found later than its grace"
TOO_MANY = "more slots waited than max_catch_up lets run"


class Misfire(StrEnum):
    """What a job does with slots that were due while nothing ran them."""

    RUN_LATEST = "run_latest"
    """One catch-up run for the newest missed slot; older ones are counted on it."""
    SKIP = "skip"
    """One `missed` row; the next future slot runs."""
    RUN_ALL = "run_all"
    """Every slot that waits, oldest first, at most `max_catch_up` of them."""


class Passed(NamedTuple):
    """Slots of which none runs, from `first` to `newest`."""

    first: datetime
    newest: datetime
    total: int = 1


@dataclass(frozen=True, slots=True)
class Verdict:
    """What to do with the slots that are due: run one, write off some.

    `run` is the slot to start now, `catch_up` whether it is past its grace, `coalesced` how many older slots are
    counted on it (the oldest is `coalesced_from`). `missed` is the newest slot to write off, with `missed_coalesced`
    older ones counted on it, the oldest of which is `missed_from`, and `why` the reason.
    """

    run: datetime | None = None
    catch_up: bool = False
    coalesced: int = 0
    coalesced_from: datetime | None = None
    missed: datetime | None = None
    missed_coalesced: int = 0
    missed_from: datetime | None = None
    why: str = ""


def grace_of(own: timedelta | None, schedule: Schedule) -> timedelta:
    """Return how late a job may start and not be too late: its own grace, or that of its kind of schedule."""
    return default_grace(schedule) if own is None else own


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

    `late` is how long after its planned start the slot was found: a start delayed by jitter, by backoff or by the run
    before is not late, and what waited for it is no miss. Only late slots have to be in the `window`; one within its
    grace always is. There are no slots after `ends_at`.
    """
    newest = latest_slot(schedule, slot, now if ends_at is None else min(now, ends_at))
    is_late = late > grace
    if newest == slot and not is_late:
        return Verdict(run=slot)
    reach = None if window is None else max(grace, window)
    if misfire is Misfire.RUN_ALL:
        return _run_all(schedule, slot, newest, now, grace, reach if is_late else None, max_catch_up)
    if not is_late:
        return _run_newest(schedule, slot, newest)
    oldest = grace if misfire is Misfire.SKIP else reach
    if oldest is not None and now - newest > oldest:
        return _write_off(schedule, slot, newest)
    if misfire is Misfire.SKIP:
        return _skip_late(schedule, slot, newest, now - grace)
    return _run_newest(schedule, slot, newest, catch_up=True)


def latest_slot(schedule: Schedule, slot: datetime, now: datetime) -> datetime:
    """Return the newest slot that is not after `now`, at least `slot` itself."""
    newest = schedule.previous_before(now + RESOLUTION)
    return slot if newest is None or newest < slot else newest


def count_slots(schedule: Schedule, first: datetime, newest: datetime) -> int:
    """Return how many slots there are from `first` to `newest`: at least `first`, also where there is no grid."""
    return 1 + schedule.count_between(first, newest)


def passed_slots(schedule: Schedule, first: datetime, until: datetime) -> Passed:
    """Return the slots from `first` to `until`, in constant time; `first` itself is always among them."""
    newest = latest_slot(schedule, first, until)
    return Passed(first, newest, count_slots(schedule, first, newest))


def _write_off(schedule: Schedule, slot: datetime, newest: datetime, why: str = FOUND_LATE) -> Verdict:
    count = count_slots(schedule, slot, newest)
    return Verdict(missed=newest, missed_coalesced=count - 1, missed_from=slot if count > 1 else None, why=why)


def _run_newest(schedule: Schedule, slot: datetime, newest: datetime, *, catch_up: bool = False) -> Verdict:
    older = count_slots(schedule, slot, newest) - 1
    return Verdict(run=newest, catch_up=catch_up, coalesced=older, coalesced_from=slot if older else None)


def _skip_late(schedule: Schedule, slot: datetime, newest: datetime, in_time_from: datetime) -> Verdict:
    """Run the newest slot, count on it those that are in time as well, and write off those before."""
    first = schedule.next_after(in_time_from - RESOLUTION) or newest
    late = schedule.previous_before(first)
    if late is None or late < slot:
        return _run_newest(schedule, slot, newest)
    return _after(_write_off(schedule, slot, late), _run_newest(schedule, first, newest))


def _after(written_off: Verdict, run: Verdict) -> Verdict:
    return replace(
        written_off, run=run.run, catch_up=run.catch_up, coalesced=run.coalesced, coalesced_from=run.coalesced_from
    )


def _run_all(
    schedule: Schedule,
    slot: datetime,
    newest: datetime,
    now: datetime,
    grace: timedelta,
    reach: timedelta | None,
    max_catch_up: int,
) -> Verdict:
    """Run the oldest slot that may still be caught up, and write off those before it."""
    oldest = _oldest_to_run(schedule, slot, newest, now, reach, max_catch_up)
    if oldest is None:
        return _write_off(schedule, slot, newest)
    run = Verdict(run=oldest, catch_up=now - oldest > grace)
    if oldest == slot:
        return run
    before = schedule.previous_before(oldest) or slot
    is_too_old = reach is not None and now - before > reach
    return _after(_write_off(schedule, slot, before, FOUND_LATE if is_too_old else TOO_MANY), run)


def _oldest_to_run(
    schedule: Schedule, slot: datetime, newest: datetime, now: datetime, reach: timedelta | None, max_catch_up: int
) -> datetime | None:
    """Return the oldest slot within reach among the newest `max_catch_up`, or None when all are outside."""
    oldest: datetime | None = None
    at: datetime | None = newest
    for _ in range(max_catch_up):
        if at is None or at < slot or (reach is not None and now - at > reach):
            break
        oldest, at = at, schedule.previous_before(at)
    return oldest
