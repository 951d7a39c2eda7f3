"""Limits over several jobs and runs: groups, pauses of groups, and rate limits."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache, partial

from django.db.models import Count, Max, Q, QuerySet

from scheduler.conf import conf
from scheduler.engine.base import Engine
from scheduler.engine.db.fast_read import CompiledQuery
from scheduler.engine.db.one_look import in_one_look
from scheduler.models import EVERYTHING, Group, Job, RunLog, TakenGroups, Trigger, in_groups
from scheduler.models.primary import locked
from scheduler.policy import Policy
from scheduler.policy.overlap import Overlap

WINDOW = 0.99
"""The part of a window of a rate limit in which starts are counted."""
NOT_BEGUN = 50
"""So many rows are looked at beyond those that a rate limit allows: claims behind a closed gate are no starts."""


TO_PLAN = Q(stale=True) | Q(paused_at__isnull=False)
"""The condition on jobs that are only to be planned: that takes no place, and is no start that a pause could stop."""


@dataclass(slots=True)
class Limits:
    """What one claim may take: which groups are paused, and how many places the limited ones have left."""

    paused: set[str] = field(default_factory=set)
    places: Counter[str] = field(default_factory=Counter)
    met_another: bool = False
    """Another instance is counting the places of a group just now: there may be some in a moment."""

    def pauses(self, job: Job) -> bool:
        """Return whether a pause of its group, or of everything, stops the job."""
        return bool(self.paused) and (EVERYTHING in self.paused or job.in_group in self.paused)

    def admits(self, job: Job) -> bool:
        """Take a place for one run of `job`, if its group has one."""
        if not self.places or (group := job.in_group) not in self.places:
            return True
        self.places[group] -= 1
        return self.places[group] >= 0

    def open_jobs(self, jobs: QuerySet[Job]) -> QuerySet[Job]:
        """Leave out the jobs whose groups take no run now, so that they do not crowd out the others.

        Those that are only to be planned stay. Nor does it take a place to ask the run to stop that is to be replaced,
        which may be what fills the group.
        """
        if EVERYTHING in self.paused:
            return jobs.filter(TO_PLAN)
        shut = self.paused | self.full()
        replaces = Q(active_runs__gt=0, overlap=Overlap.REPLACE) & ~in_groups(self.paused)
        return jobs.filter(TO_PLAN | replaces | ~in_groups(shut)) if shut else jobs

    def open_attempts(self, runs: QuerySet[RunLog], now: datetime) -> QuerySet[RunLog]:
        """Leave out the promised attempts that cannot start now, for the same reason.

        A pause stops what the plan promised, a backfill, and runs for users, not what a person asks for by hand; places
        in a group count for all. What the plan promised a job that is paused itself is let through, to be cancelled.
        """
        goes_on = Q(job__paused_at__isnull=True) | Q(job__paused_until__lte=now)
        runs = runs.filter(~Q(trigger__in=Trigger.which("waits")) | goes_on)
        runs = runs.filter(~Q(trigger=Trigger.ACTIVITY) | Q(job__enabled=True))
        if self.paused:
            by_hand = Q(trigger=Trigger.MANUAL)
            runs = runs.filter(by_hand if EVERYTHING in self.paused else by_hand | ~in_groups(self.paused, "job__"))
        full = self.full()
        return runs.exclude(in_groups(full, "job__")) if full else runs

    def admits_attempt(self, job: Job, run: RunLog) -> bool:
        """Take a place for a promised attempt of `job`, if no pause stops it and its group has one."""
        return (run.trigger == Trigger.MANUAL or not self.pauses(job)) and self.admits(job)

    def full(self) -> set[str]:
        """Return the groups without a free place."""
        return {name for name, places in self.places.items() if places <= 0}


def jobs_taken(takes: TakenGroups, jobs: QuerySet[Job]) -> QuerySet[Job]:
    """Leave out the jobs of groups that a process does not take, but for those that are only to be planned."""
    return jobs if takes.are_all else jobs.filter(takes.condition() | TO_PLAN)


def attempts_taken(takes: TakenGroups, runs: QuerySet[RunLog]) -> QuerySet[RunLog]:
    """Leave out the promised attempts of groups that a process does not take."""
    return runs if takes.are_all else runs.filter(takes.condition("job__"))


def read_limits(engine: Engine, *, waits: bool = False, most: Mapping[str, int] | None = None) -> Limits:
    """Return the limits as they stand, inside the transaction of a claim.

    The rows of limited groups are locked, so that two instances cannot count the same places; a group that another
    instance is counting just now has none for us, unless the caller `waits` for it. `most` has the limits, which else
    are those of SCHEDULER_GROUPS.
    """
    most = conf.GROUPS if most is None else most
    groups = Group.objects.using(engine.using)
    paused_at: dict[str, datetime | None] = dict(_every_group(engine.using).rows())
    limits = Limits(paused={name for name, at in paused_at.items() if at is not None})
    if most:
        if not most.keys() <= paused_at.keys():
            groups.bulk_create([Group(name=name) for name in most], ignore_conflicts=True)
        limited = groups.filter(name__in=list(most)).order_by("name")
        ours = {group.name for group in locked(limited, skip_locked=not waits)}
        limits.met_another = len(ours) < len(most)
        living = living_by_group(engine, ours)
        for name, places in most.items():
            limits.places[name] = places - living[name] if name in ours else 0
    return limits


@lru_cache(maxsize=16)
def _every_group(using: str) -> CompiledQuery:
    return CompiledQuery(Group.objects.using(using).values_list("name", "paused_at"))


def living_by_group(engine: Engine, names: Iterable[str]) -> Counter[str]:
    """Count the living runs of groups from the runs themselves, so that a crash cannot leave a wrong count."""
    living = RunLog.objects.using(engine.using).living().filter(in_groups(names, "job__"))
    found: Counter[str] = Counter()
    for name, runs in living.values_list("job__group").annotate(Count("pk")).order_by():
        found[name or conf.DEFAULT_GROUP] += runs
    return found


def full_groups(engine: Engine) -> set[str]:
    """Return the limited groups that have as many living runs as they may."""
    return in_one_look(f"full groups {engine.using}", partial(_full_groups, engine))


def _full_groups(engine: Engine) -> set[str]:
    living = living_by_group(engine, conf.GROUPS) if conf.GROUPS else Counter()
    return {name for name, most in conf.GROUPS.items() if living[name] >= most}


def rate_is_used_up(engine: Engine, job: Job, policy: Policy, start: datetime) -> bool:
    """Return whether the job has had all the runs its rate limit allows in the window that ends with `start`.

    The window is one per cent short: no start is exact, and an hourly job keeps to “1/h”. Starts are in order of their
    tokens, rows of their slots: the newest rows tell, unless a token of the window is missing among them. Then a slot
    of long ago was caught up or backfilled (or a claim was given back), and all rows are searched.
    """
    if policy.rate_limit is None:
        return False
    since, most = start - policy.rate_limit.per * WINDOW, policy.rate_limit.count
    claims = RunLog.objects.using(engine.using).filter(job=job, token__gt=0)
    in_window, not_begun = Q(started_at__gt=since), Q(started_at__isnull=True)
    newest = claims.order_by("-scheduled_for")[: most + NOT_BEGUN].aggregate(
        ran=Count("pk", filter=in_window),
        beside=Count("pk", filter=not_begun & Q(finished_at__gt=since)),
        before=Max("token", filter=Q(started_at__lte=since) | not_begun & Q(finished_at__lte=since), default=0),
    )
    ran: int = newest["ran"]
    if ran < most and newest["before"] + ran + newest["beside"] < job.token:
        ran = claims.filter(in_window).order_by()[:most].count()
    return policy.rate_limit.is_used_up(ran)
