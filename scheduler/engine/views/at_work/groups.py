"""Groups at work: their limits, what holds their places, and what waits for one, in a constant number of queries."""

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Count, Q, QuerySet

from scheduler.conf import conf
from scheduler.engine.base import Engine
from scheduler.engine.limits import living_by_group
from scheduler.engine.views.pauses import Hold, Paused
from scheduler.models import EVERYTHING, LONG_AGO, Job, RunLog, Trigger, in_groups

MOST_LISTED = 500
"""Runs, and jobs, that are read of all groups together; all of them are counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupAtWork:
    """How a group stands: it has `taken` runs, of the `most` that it may have at once; None without a limit."""

    name: str
    jobs: int
    most: int | None
    taken: int
    waiting: int
    hold: Hold | None
    """The pause that holds its jobs, of the group or of everything."""

    @property
    def is_full(self) -> bool:
        """Whether it has no place left."""
        return self.most is not None and self.taken >= self.most

    @property
    def urgency(self) -> tuple[bool, bool, bool, str]:
        """What groups are ordered by: those that stop or delay jobs come first."""
        return not self.hold, not self.waiting, not self.taken, self.name


def groups_at_work(jobs: QuerySet[Job], paused: Paused, now: datetime, *, unused: bool) -> list[GroupAtWork]:
    """Return the groups of some jobs; where `unused`, also those that are limited or paused and have no job."""
    counts: Counter[str] = Counter()
    for name, number in jobs.order_by().values_list("group").annotate(Count("pk")):
        counts[name or conf.DEFAULT_GROUP] += number
    names = ({*counts} | ({*conf.GROUPS, *paused} if unused else set())) - {EVERYTHING}
    taken = living_by_group(Engine(), names) if names else Counter()
    full = {name for name, most in conf.GROUPS.items() if taken[name] >= most} & names
    waiting = _counted_attempts(full, paused, names, now) + _counted_jobs(full, paused, now)
    everything = paused.get(EVERYTHING)
    found = [
        GroupAtWork(
            name=name, jobs=counts[name], most=conf.GROUPS.get(name), taken=taken[name], waiting=waiting[name],
            hold=Hold.of(stopped) if (stopped := paused.get(name) or everything) else None,
        )
        for name in names
    ]  # fmt: skip
    return sorted(found, key=lambda one: one.urgency)


def places_held(groups: Collection[GroupAtWork]) -> QuerySet[RunLog]:
    """Return the living runs of groups, those that began first before the others."""
    runs = RunLog.objects.living().filter(due_at__gt=LONG_AGO).order_by("started_at", "pk")
    names = [one.name for one in groups if one.taken]
    return runs.filter(in_groups(names, "job__"))[:MOST_LISTED] if names else runs.none()


def attempts_waiting(groups: Collection[GroupAtWork], now: datetime) -> QuerySet[RunLog]:
    """Return the promised attempts that would start now, if it were not for their groups; longest waiting first."""
    waiting = [one for one in groups if one.waiting]
    runs = _attempts({one.name for one in waiting if one.is_full}, {one.name for one in waiting if one.hold}, now)
    return runs.order_by("due_at", "pk")[:MOST_LISTED]


def jobs_waiting(
    groups: Collection[GroupAtWork], jobs: QuerySet[Job], now: datetime
) -> list[tuple[Job, datetime | None]]:
    """Return those of the jobs that are due and wait for a place in their groups, and since when; longest first."""
    full = {one.name for one in groups if one.is_full and not one.hold}
    if not full:
        return []
    due = jobs.filter(_due(full, now)).order_by("wake_at", "pk").only("name", "group", "wake_at")
    return [(job, job.wake_at) for job in due[:MOST_LISTED]]


def _counted_attempts(full: set[str], paused: Paused, names: set[str], now: datetime) -> Counter[str]:
    held = names if EVERYTHING in paused else names & paused.keys()
    return _counted(_attempts(full, held, now), "job__group") if full or held else Counter()


def _counted_jobs(full: set[str], paused: Paused, now: datetime) -> Counter[str]:
    """Slots that pass in a pause are not made up for: its jobs wait for nothing."""
    open_ones = set() if EVERYTHING in paused else full - paused.keys()
    return _counted(Job.objects.filter(_due(open_ones, now)), "group") if open_ones else Counter()


def _counted(rows: QuerySet[Job] | QuerySet[RunLog], column: str) -> Counter[str]:
    found: Counter[str] = Counter()
    for name, number in rows.order_by().values_list(column).annotate(Count("pk")):
        found[name or conf.DEFAULT_GROUP] += number
    return found


def _attempts(full: set[str], held: set[str], now: datetime) -> QuerySet[RunLog]:
    """Return the due attempts for which a group has no place, or which its pause holds: not runs by hand."""
    due = RunLog.objects.waiting().filter(due_at__gt=LONG_AGO, due_at__lte=now, handed_at__isnull=True)
    stopped = in_groups(held, "job__") & ~Q(trigger=Trigger.MANUAL)
    return due.filter((in_groups(full, "job__") | stopped) & Q(job__paused_at__isnull=True))


def _due(groups: set[str], now: datetime) -> Q:
    """Return the condition on jobs that the next tick would start, if their groups had a place."""
    return in_groups(groups) & Q(wake_at__lte=now, stale=False, paused_at__isnull=True, enabled=True)
