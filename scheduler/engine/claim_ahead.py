"""Reach: how much a process may claim, beside the workers that are free just now."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TypeVar

from django.db.models import Q

from scheduler.engine.base import Claimed
from scheduler.functions import is_async
from scheduler.models import Job, Trigger
from scheduler.registry import Registry

T = TypeVar("T")

AT_ONCE = 250
"""Claims of one pass: where the machine is busy, the first ones are there when they are due."""


@dataclass(frozen=True, slots=True)
class Room:
    """How many runs for users may be claimed that hold a worker; those of the tasks `beside` hold none.

    `after_plan`: only when nothing else is due.
    """

    left: int
    after_plan: bool = False
    beside: frozenset[str] = frozenset()

    def of_users(self) -> Q:
        """Select the attempts that need it."""
        return Q(trigger=Trigger.ACTIVITY) & ~Q(job__task__in=self.beside)

    def without(self, runs: Sequence[Claimed]) -> "Room":
        """Return what is left of it beside runs that were claimed."""
        taken = sum(one.run.trigger == Trigger.ACTIVITY and one.task.name not in self.beside for one in runs)
        return replace(self, left=max(0, self.left - taken))


@dataclass(frozen=True, slots=True)
class Reach:
    """What may be claimed ahead of its instant beyond the capacity, so that a burst starts at the speed of memory.

    At most `count` runs, of which `asynchronous` on the event loop, and so many others as end within `seconds` of
    workers by what is known of them: what waits for longer than its turn is given back anyway.
    """

    count: int = 0
    held: int = 0
    """How many this process has claimed and not started."""
    seconds: float = 0.0
    asynchronous: int = 0
    known: Mapping[str, float] = field(default_factory=dict)
    """The seconds that the runs of a task take, for jobs that have had none. Where nothing is known it counts for
    nothing: what turns out to be long is known from then on."""

    def of_one_pass(self, instances: int, capacity: int) -> "Reach":
        """Return the share of one of the live instances, for one pass: what one has taken, no other one starts."""
        share = self.count // max(1, instances) - self.held
        return replace(self, count=max(0, min(share, AT_ONCE - capacity)))

    def without(self, count: int) -> "Reach":
        """Return what is left when `count` of it are taken."""
        return replace(self, count=max(0, self.count - max(0, count)))

    def fitting(self, limit: int, rows: Sequence[T], ahead: Iterable[Job | None], tasks: Registry) -> list[T]:
        """Return the first `limit` rows and those behind them that fit; `ahead` has the job of each not due yet.

        The first ones take of the time, too.
        """
        if len(rows) <= limit:
            return list(rows)
        fits = self._fits(tasks)
        return [row for place, (row, job) in enumerate(zip(rows, ahead, strict=True)) if fits(job) or place < limit]

    def _fits(self, tasks: Registry) -> Callable[[Job | None], bool]:
        seconds, asynchronous = self.seconds, self.asynchronous

        def fits(job: Job | None) -> bool:
            nonlocal seconds, asynchronous
            if job is None:
                return False
            if _is_async(tasks, job.task):
                asynchronous -= 1
                return asynchronous >= 0
            seconds -= self._seconds(job)
            return seconds >= 0

        return fits

    def _seconds(self, job: Job) -> float:
        began, ended = job.last_run_at, job.last_finished_at
        if began and ended and ended >= began:
            return float((ended - began).total_seconds())
        return self.known.get(job.task, 0.0)


NO_REACH = Reach()


def due_later(start: datetime | None, now: datetime, job: Job) -> Job | None:
    """Return the job if its start is to come."""
    return job if start is not None and start > now else None


def _is_async(tasks: Registry, name: str) -> bool:
    task = tasks.find(name)
    return task is not None and is_async(task.function)
