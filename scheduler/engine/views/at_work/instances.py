"""Instances at work: which runs each of them has, begun or not, in a constant number of queries."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from uuid import UUID

from django.db.models import QuerySet

from scheduler.models import LONG_AGO, Instance, RunLog

MOST_LISTED = 200


def living_runs() -> QuerySet[RunLog]:
    """Return the runs that instances have claimed and that have not ended, those that began first before the others.

    One more than is listed, so that the reader knows whether there are more.
    """
    return RunLog.objects.living().filter(due_at__gt=LONG_AGO).order_by("started_at", "pk")[: MOST_LISTED + 1]


def instances_of(runs: Iterable[RunLog]) -> dict[UUID, Instance]:
    """Return the instances that have the runs, by their keys; without one that is gone."""
    return Instance.objects.in_bulk({run.instance_id for run in runs if run.instance_id is not None})


def has_begun(run: RunLog, instances: Mapping[UUID, Instance], now: datetime) -> bool:
    """Return whether a living run has started: it was not claimed ahead of its instant, and waits for no worker, as
    far as its instance told with the last heartbeat."""
    one = instances.get(run.instance_id) if run.instance_id is not None else None
    is_ahead = run.started_at is not None and run.started_at > now
    return not (is_ahead or (one is not None and run.pk in one.pool.runs))
