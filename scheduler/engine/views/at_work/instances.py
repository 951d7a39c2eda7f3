"""Instances at work: which runs each of them has, begun or not, in a constant number of queries."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import QuerySet

from scheduler.models import LONG_AGO, Instance, RunLog

MOST_LISTED = 200
MOST_COUNTED = 10_000


def living_runs() -> QuerySet[RunLog]:
    """Return the runs that instances have claimed and that have not ended, those that began first before the others.

    One more than is listed, so that the reader knows whether there are more.
    """
    return RunLog.objects.living().filter(due_at__gt=LONG_AGO).order_by("started_at", "pk")[: MOST_LISTED + 1]


@dataclass(frozen=True, slots=True)
class InstanceAtWork:
    """An instance with its living runs: how many workers those use, how many wait for one, and which have begun."""

    instance: Instance
    used: int
    waiting: int
    begun: frozenset[int]

    @property
    def free(self) -> int:
        """How many workers could take a run."""
        return max(0, self.instance.pool.count - self.used)


def instances_at_work(now: datetime) -> dict[UUID, InstanceAtWork]:
    """Return all instances with what they run, by their keys, in two queries."""
    living: dict[Any, list[tuple[int, datetime]]] = defaultdict(list)
    rows = RunLog.objects.living().filter(due_at__gt=LONG_AGO, instance_id__isnull=False).order_by("started_at", "pk")
    for run_id, owner, started_at in rows.values_list("pk", "instance_id", "started_at")[:MOST_COUNTED]:
        living[owner].append((run_id, started_at or now))
    return {one.pk: _at_work(one, living[one.pk], now) for one in Instance.objects.defer("tasks", "unable")}


def _at_work(one: Instance, living: Sequence[tuple[int, datetime]], now: datetime) -> InstanceAtWork:
    """Tell of the rows which have begun: of those that need a worker as many as there are workers, at first those that
    had one at the last heartbeat, then those that waited, in their order, then those claimed since. What has ended
    since has no living row and leaves its worker to the next."""
    pool = one.pool
    places = {run_id: place for place, run_id in enumerate(pool.runs)}

    def turn(run: tuple[int, datetime]) -> tuple[bool, int]:
        run_id, started_at = run
        return started_at > one.heartbeat_at and run_id not in places, places.get(run_id, -1)

    due = [run for run in living if run[1] <= now]
    apart = [run_id for run_id, _ in due if run_id in pool.apart]
    in_turn = [run_id for run_id, _ in sorted(due, key=turn) if run_id not in pool.apart]
    on_workers = in_turn[: pool.count or None]
    begun = frozenset([*apart, *on_workers])
    return InstanceAtWork(one, len(on_workers), len(living) - len(begun), begun)
