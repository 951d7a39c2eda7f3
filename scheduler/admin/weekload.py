"""The load of the next seven days, and advice where many jobs share a minute."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import lru_cache
from math import inf

from django.conf import settings

from scheduler.admin.look import is_going
from scheduler.engine.tocome import Bounds, bounds_of
from scheduler.models import Job
from scheduler.schedules import Schedule

WEEK, HOUR, MINUTE = timedelta(days=7), timedelta(hours=1), timedelta(minutes=1)
MOST_SLOTS = 200
CROWD = 4
MOST_JOBS = 1_000
COLUMNS = (
    "name",
    "group",
    "schedule",
    "policy",
    "enabled",
    "anchor_at",
    "active_runs",
    "orphaned_at",
    "problem",
    "broken_at",
    "paused_at",
    "next_run_at",
    "next_start_at",
    "last_finished_at",
    "last_outcome_at",
    "successes",
    "failures",
    "timeouts",
    "losses",
    "cancellations",
)
"""What `load_of` reads of a job."""


@dataclass(frozen=True, slots=True)
class Crowd:
    """Jobs that start in the same minute."""

    at: datetime
    count: int
    names: list[str]


@dataclass(frozen=True, slots=True)
class Load:
    """The starts of each hour, and the most crowded minutes of the next day."""

    starts: dict[datetime, float]
    crowds: list[Crowd]


def load_of(jobs: Iterable[Job], midnight: datetime, now: datetime) -> Load:
    """Return the load of seven days from `midnight`. Frequent jobs are spread evenly; the others slot by slot."""
    starts: dict[datetime, float] = defaultdict(float)
    sharing: dict[datetime, set[str]] = defaultdict(set)
    weights: Counter[tuple[Schedule, Bounds]] = Counter()
    for job in filter(is_going, jobs):
        schedule = job.schedule.bind(anchor=job.anchor_at or midnight, timezone=settings.TIME_ZONE)
        bounds = _bounds(job, now)
        weights[schedule, bounds] += 1
        for slot in bounds.within(_slots(schedule, midnight)):
            if now <= slot < now + timedelta(days=1) and not schedule.jitter:
                sharing[slot.replace(second=0, microsecond=0)].add(job.name)
    for (schedule, bounds), weight in weights.items():
        for hour, count in _starts(schedule, bounds, midnight):
            starts[hour] += count * weight
    return Load(dict(starts), _crowds(sharing))


def _bounds(job: Job, now: datetime) -> Bounds:
    """Return the bounds of a job; the runs that `max_runs` leaves it are yet to come."""
    bounds = bounds_of(job)
    return bounds if bounds.most is None else replace(bounds, first=max(now, bounds.first or now))


def _starts(schedule: Schedule, bounds: Bounds, midnight: datetime) -> Iterator[tuple[datetime, float]]:
    """Yield hours with how often a job starts in each."""
    slots = _slots(schedule, midnight)
    if slots:
        for slot in bounds.within(slots):
            yield _hour_of(slot), 1
        return
    each, left = _per_hour(schedule, midnight), inf if bounds.most is None else bounds.most
    hours = (midnight + hour * HOUR for hour in range(24 * 7))
    spread = replace(bounds, first=bounds.first and _hour_of(bounds.first), most=None)
    for hour in spread.within(hours) if each else ():
        yield hour, min(each, left)
        left = max(0, left - each)


def _hour_of(at: datetime) -> datetime:
    return at.replace(minute=0, second=0, microsecond=0)


@lru_cache(maxsize=2048)
def _slots(schedule: Schedule, midnight: datetime) -> tuple[datetime, ...]:
    """Return the slots of the week; none when there are more than 200, which `_per_hour` then spreads."""
    if schedule.from_completion or (schedule.period and WEEK / schedule.period > MOST_SLOTS):
        return ()
    found: list[datetime] = []
    slot = schedule.next_after(midnight - timedelta(microseconds=1))
    while slot is not None and slot < midnight + WEEK:
        if len(found) == MOST_SLOTS:
            return ()
        found.append(slot)
        slot = schedule.next_after(slot)
    return tuple(found)


@lru_cache(maxsize=2048)
def _per_hour(schedule: Schedule, midnight: datetime) -> float:
    if schedule.from_completion and schedule.period:
        return HOUR / schedule.period
    return schedule.count_between(midnight, midnight + WEEK) / (24 * 7)


def _crowds(sharing: dict[datetime, set[str]]) -> list[Crowd]:
    crowded = [(at, names) for at, names in sharing.items() if len(names) >= CROWD]
    worst = sorted(crowded, key=lambda pair: (-len(pair[1]), pair[0]))[:5]
    return [Crowd(at, len(names), sorted(names)[:8]) for at, names in worst]
