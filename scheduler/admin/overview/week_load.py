"""The load of the next seven days in the zone of the reader, and advice where many jobs share a minute."""

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache
from math import inf
from typing import Any, NamedTuple

from django.conf import settings

from scheduler.engine.views.pauses import Paused, begins
from scheduler.engine.views.upcoming import Bounds, bounds_of
from scheduler.models import Job
from scheduler.schedules import Schedule

WEEK, DAY, HOUR, QUARTER = timedelta(days=7), timedelta(days=1), timedelta(hours=1), timedelta(minutes=15)
MOST_SLOTS = 200
CROWD = 4
MOST_JOBS = 10_000
MOST_LISTED = 100
NO_PAUSE: Paused = {}
OF_LOAD = (
    "name", "group", "schedule", "policy", "enabled", "anchor_at", "next_run_at", "wake_at", "orphaned_at", "problem",
    "broken_at", "paused_at", "paused_until", "paused_by", "pause_reason", "active_runs", "last_finished_at",
    "last_outcome_at", "successes", "failures", "timeouts", "losses", "cancellations",
)  # fmt: skip
"""The columns of a job that the load is made of."""


@dataclass(frozen=True, slots=True)
class Crowd:
    """Jobs that start in the same minute."""

    at: datetime
    count: int
    names: list[str]


@dataclass(frozen=True, slots=True)
class Load:
    """The starts of each hour by the clock of the reader, the most crowded minutes of the next day, and what starts in
    the hour that was asked for: slot, key and name of the job, None for one that starts all the time."""

    starts: dict[datetime, float]
    crowds: list[Crowd]
    listed: list[tuple[datetime | None, int, str]]


def load_of(
    jobs: Iterable[Job],
    midnight: datetime,
    now: datetime,
    paused: Paused = NO_PAUSE,
    hour: datetime | None = None,
) -> Load:
    """Return the load of seven days from `midnight`, in its zone. Frequent jobs are spread evenly; the others slot by
    slot. An hour that clocks skip has none, one that they show twice has the starts of both."""
    week = Week(midnight.astimezone(UTC), (midnight + WEEK).astimezone(UTC))
    planned = list(_planned(jobs, week, now, paused))
    starts = _by_hour(planned, week, midnight.tzinfo)
    listed = [start for one in planned for start in _in_hour(one, week, hour)] if hour else []
    in_order = sorted(listed, key=lambda start: (start[0] is None, start[0], start[2]))
    return Load(starts, _crowds(planned, week, now), in_order)


class Week(NamedTuple):
    """When the seven days of the reader begin and end, in UTC: clocks may change in between."""

    start: datetime
    end: datetime


class Alike(NamedTuple):
    """Jobs that start alike: by which schedule, and within which bounds."""

    schedule: Schedule
    bounds: Bounds
    jobs: list[Job]


def _planned(jobs: Iterable[Job], week: Week, now: datetime, paused: Paused) -> list[Alike]:
    """Return the jobs that their schedules start. Rows that are read together share equal schedules and policies, so
    that these are told apart by identity: to compare thousands by value takes most of the time of the page."""
    found: dict[Any, list[Job]] = defaultdict(list)
    for job in jobs:
        if (begin := begins(job, paused, now)) is not None:
            anchor = None if job.schedule.is_calendar else job.anchor_at
            used = None if job.policy.max_runs is None else (job.ended_runs, job.active_runs)
            found[id(job.schedule), id(job.policy), anchor, used, begin].append(job)
    return [
        Alike(_bound_schedule(alike[0], week), _bounds(alike[0], now, begin), alike)
        for (*_, begin), alike in found.items()
    ]


def _bound_schedule(job: Job, week: Week) -> Schedule:
    return _bound(job.schedule, job.anchor_at or week.start, settings.TIME_ZONE)


@lru_cache(maxsize=2 * MOST_JOBS)
def _bound(schedule: Schedule, anchor: datetime, timezone: str) -> Schedule:
    """Return a schedule that leaves nothing open; a job has the same one each time the page is asked for."""
    return schedule.bind(anchor=anchor, timezone=timezone)


def _by_hour(planned: Iterable[Alike], week: Week, zone: tzinfo | None) -> dict[datetime, float]:
    """Return the starts of each hour by the clock of a zone. Those of each quarter are counted first, for all jobs that
    start alike: the clocks of all zones show full hours at one of these."""
    alike: Counter[tuple[Schedule | float, Bounds]] = Counter()
    for schedule, bounds, jobs in planned:
        alike[schedule if _slots(schedule, week) else _per_hour(schedule, week), bounds] += len(jobs)
    quarters: dict[int, float] = defaultdict(float)
    for (schedule_or_rate, bounds), weight in alike.items():
        for number, count in _quarters(schedule_or_rate, bounds, week):
            quarters[number] += count * weight
    starts: dict[datetime, float] = defaultdict(float)
    for number, count in sorted(quarters.items()):
        starts[_hour_of(week.start + number * QUARTER, zone)] += count
    return dict(starts)


@lru_cache(maxsize=2048)
def _quarters(schedule: Schedule | float, bounds: Bounds, week: Week) -> list[tuple[int, float]]:
    """Return how often a job starts in quarters of the week, which are numbered."""
    return [(int((at - week.start) // QUARTER), count) for at, count in _starts(schedule, bounds, week)]


def _in_hour(alike: Alike, week: Week, hour: datetime) -> list[tuple[datetime | None, int, str]]:
    """Return the starts of jobs in an hour of the reader's clock; one without a slot for all of a frequent job."""
    schedule, bounds, jobs = alike
    has_slots = bool(_slots(schedule, week))
    starts = _starts(schedule if has_slots else _per_hour(schedule, week), bounds, week)
    found = [at for at, _ in starts if _hour_of(at, hour.tzinfo) == hour]
    slots: Sequence[datetime | None] = found if has_slots else [None] * bool(found)
    return [(slot, job.pk, job.name) for job in jobs for slot in slots]


def _bounds(job: Job, now: datetime, begin: datetime) -> Bounds:
    """Return the bounds of a job; the runs that `max_runs` leaves it are yet to come, after a pause that ends."""
    bounds = bounds_of(job)
    if bounds.most is None and begin <= now:
        return bounds
    return replace(bounds, first=max(begin, bounds.first or begin))


def _starts(schedule: Schedule | float, bounds: Bounds, week: Week) -> Iterator[tuple[datetime, float]]:
    """Yield instants with how often a job starts in the hour from each: by its slots, or by how often in each hour."""
    if isinstance(schedule, Schedule):
        for slot in bounds.within(_slots(schedule, week)):
            yield slot, 1
        return
    each, left = schedule, inf if bounds.most is None else bounds.most
    hours = (week.start + hour * HOUR for hour in range((week.end - week.start) // HOUR))
    first = bounds.first and week.start + (bounds.first - week.start) // HOUR * HOUR
    for hour in replace(bounds, first=first, most=None).within(hours) if each else ():
        yield hour, min(each, left)
        left = max(0, left - each)


def _hour_of(at: datetime, zone: tzinfo | None) -> datetime:
    """Return the hour that the clock of a zone shows; of an hour that it shows twice, the first pass."""
    return at.astimezone(zone).replace(minute=0, second=0, microsecond=0, fold=0)


@lru_cache(maxsize=2048)
def _slots(schedule: Schedule, week: Week) -> tuple[datetime, ...]:
    """Return the slots of the week; none when there are more than 200, which `_per_hour` then spreads."""
    if schedule.from_completion or (schedule.period and WEEK / schedule.period > MOST_SLOTS):
        return ()
    found: list[datetime] = []
    slot = schedule.next_after(week.start - timedelta(microseconds=1))
    while slot is not None and slot < week.end:
        if len(found) == MOST_SLOTS:
            return ()
        found.append(slot)
        slot = schedule.next_after(slot)
    return tuple(found)


@lru_cache(maxsize=2 * MOST_JOBS)
def _per_hour(schedule: Schedule, week: Week) -> float:
    if schedule.from_completion and schedule.period:
        return HOUR / schedule.period
    return schedule.count_between(*week) / ((week.end - week.start) / HOUR)


def _crowds(planned: Iterable[Alike], week: Week, now: datetime) -> list[Crowd]:
    """Return the minutes of the next day in which most jobs start."""
    sharing: dict[datetime, list[list[Job]]] = defaultdict(list)
    for schedule, bounds, jobs in planned:
        for at in () if schedule.jitter else _minutes(schedule, bounds, week, now):
            sharing[at].append(jobs)
    counts = ((at, sum(map(len, alike))) for at, alike in sharing.items())
    worst = sorted(((at, count) for at, count in counts if count >= CROWD), key=lambda one: (-one[1], one[0]))
    return [Crowd(at, count, sorted(job.name for jobs in sharing[at] for job in jobs)[:8]) for at, count in worst[:5]]


def _minutes(schedule: Schedule, bounds: Bounds, week: Week, now: datetime) -> set[datetime]:
    """Return the minutes of the next day in which jobs of a schedule start."""
    slots = _slots(schedule, week)
    of_day = bounds.within(slots[bisect_left(slots, now) : bisect_left(slots, now + DAY)])
    return {slot.replace(second=0, microsecond=0) for slot in of_day}
