"""Overdue: which jobs should have started and have not, although nothing holds them."""

from datetime import datetime, timedelta

from django.db.models import F, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Coalesce

from scheduler.engine.base import Engine
from scheduler.engine.limits import full_groups
from scheduler.engine.views.pauses import HELD
from scheduler.models import LONG_AGO, Job, RunLog, in_groups

OVERDUE_AFTER = timedelta(seconds=60)
"""So late a start is more than a busy moment."""
TASKS_OVERDUE_AFTER = timedelta(minutes=5)
"""So long a wait is more than a busy moment."""


def overdue(now: datetime) -> Q:
    """Return the condition on jobs that should have started a minute before `now`, or of which no process takes a run.

    The jobs of a group that is paused or full, and all while everything is paused, wait by design.
    """
    full = full_groups(Engine())
    return perhaps_overdue(now) & ~in_groups(full) if full else perhaps_overdue(now)


def perhaps_overdue(now: datetime) -> Q:
    """Return the same condition, but for jobs that wait for a full group; it asks no database."""
    untaken = Q(paused_at=None, pk__in=_untaken().values("job"))
    return ~Q(HELD) & (Q(stale=False, wake_at__lt=now - OVERDUE_AFTER) | untaken)


def overdue_jobs(now: datetime) -> QuerySet[Job]:
    """Return these jobs, the oldest first; each has `overdue_since`."""
    # By a sum no database can search all rows of each job: it takes the few that are open.
    untaken = _untaken().annotate(owner=F("job_id") + 0)
    first = untaken.filter(owner=OuterRef("pk")).order_by("stuck_at").values("stuck_at")[:1]
    since = Coalesce(Subquery(first), F("wake_at"))
    return Job.objects.filter(overdue(now)).annotate(overdue_since=since).order_by("overdue_since")


def _untaken() -> QuerySet[RunLog]:
    """Attempts that had to be handed over again. The bound on `due_at` lets the index of open runs answer."""
    return RunLog.objects.handed_over().filter(due_at__gt=LONG_AGO, stuck_at__isnull=False).order_by()


def overdue_tasks(now: datetime) -> QuerySet[RunLog]:
    """Return the tasks that have been due for long."""
    return RunLog.objects.waiting().filter(priority__isnull=False, due_at__lt=now - TASKS_OVERDUE_AFTER).order_by()
