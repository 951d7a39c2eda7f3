"""Waiting: what jobs wait for besides the time, learnt for a page of jobs in a constant number of queries."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple, TypeVar

from django.db.models import F, Model, QuerySet
from django.utils.module_loading import import_string

from scheduler.engine.base import Engine
from scheduler.engine.dependencies import ends_of
from scheduler.engine.limits import full_groups
from scheduler.engine.plan import Plan, missing_parents
from scheduler.models import LONG_AGO, Job, RunLog, Trigger
from scheduler.models.run import AT_GATE

M = TypeVar("M", bound=Model)

MOST_ATTEMPTS = 1_000
"""Of a page of jobs, those that are due first."""
MOST_KEYS = 500
"""Rows are not looked for by more keys than these: of so many jobs they may as well be read of all."""
WHO_WAITS = "scheduler.activity.api.waiting_users"
"""Of the package above, which knows how many users wait for runs of the jobs that follow what they do."""
OF_PLAN = Trigger.which("counts")


class Attempt(NamedTuple):
    """A promised attempt, which starts at `due_at`; or, handed over since `handed_at`, when a process takes it."""

    run: int
    due_at: datetime
    attempt: int
    trigger: str
    reason: str
    handed_at: datetime | None


@dataclass(frozen=True, slots=True)
class Waiting:
    """What a job waits for. Each is empty where it waits for nothing of the kind."""

    attempts: tuple[Attempt, ...] = ()
    """Promised attempts, the one that is due first before the others."""
    parents: tuple[str, ...] = ()
    """The jobs whose ends it waits for."""
    full_group: str = ""
    """Its group, where that has no place left."""
    users: int | None = 0
    """How many users wait for a run; None where that is not known, as the store of activities does not answer."""
    has_users: bool = False

    @property
    def of_plan(self) -> Attempt | None:
        """The first promised attempt of a slot of its schedule."""
        return next((one for one in self.attempts if one.trigger in OF_PLAN), None)

    @property
    def gate(self) -> str:
        """Why its gate is closed, where a slot waits for it."""
        reasons = (one.reason for one in self.attempts if one.reason.startswith(AT_GATE))
        return next(reasons, "").removeprefix(AT_GATE)


def waiting_of(jobs: Sequence[Job]) -> dict[int | None, Waiting]:
    """Return what each of the jobs waits for, by their keys."""
    stored = [job for job in jobs if job.pk is not None]
    if not stored:
        return {}
    attempts, parents, users = _attempts(stored), _parents(stored), import_string(WHO_WAITS)(stored)
    full = full_groups(Engine())
    return {
        job.pk: Waiting(
            attempts=tuple(attempts[job.pk]),
            parents=parents.get(job.pk, ()),
            full_group=job.in_group if job.in_group in full else "",
            users=users.get(job.name, 0),
            has_users=job.name in users,
        )
        for job in stored
    }


def among(rows: QuerySet[M], column: str, jobs: Sequence[Job]) -> QuerySet[M]:
    """Return those of some rows that belong to the jobs; of very many jobs, all of them."""
    return rows.filter(**{f"{column}__in": [job.pk for job in jobs]}) if len(jobs) <= MOST_KEYS else rows


def _attempts(jobs: Sequence[Job]) -> dict[int, list[Attempt]]:
    """Some databases would search all rows of the jobs; by a sum they cannot, and take the few runs that are open."""
    found: dict[int, list[Attempt]] = defaultdict(list)
    waiting = RunLog.objects.waiting().filter(due_at__gt=LONG_AGO).annotate(owner=F("job_id") + 0)
    rows = among(waiting, "owner", jobs).order_by("due_at", "pk").values_list("job_id", "pk", *Attempt._fields[1:])
    for job, *told in rows[:MOST_ATTEMPTS]:
        found[job].append(Attempt(*told))
    return found


def _parents(jobs: Sequence[Job]) -> dict[int, tuple[str, ...]]:
    followers = [(job, job.schedule) for job in jobs if job.schedule.is_dependent]
    if not followers:
        return {}
    ended = ends_of(Engine().using, {name for _, schedule in followers for name in schedule.parents})
    return {job.pk: missing_parents(Plan.of(job), schedule, ended) for job, schedule in followers}
