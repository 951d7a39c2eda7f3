"""Overdue: which jobs should have started and have not, although nothing holds them."""

from datetime import datetime, timedelta

from django.db.models import Exists, OuterRef, Q

from scheduler.engine.base import Engine
from scheduler.engine.limits import full_groups
from scheduler.models import EVERYTHING, UNPLANNED, Group

OVERDUE_AFTER = timedelta(seconds=60)
"""So late a start is more than a busy moment."""


def overdue(now: datetime) -> Q:
    """Return the condition on jobs that should have started a minute before `now`.

    The jobs of a group that is paused or full, and all while everything is paused, wait by design.
    """
    pauses = Group.objects.paused().filter(Q(name=OuterRef("group")) | Q(name=EVERYTHING))
    late = Q(~Exists(pauses), next_start_at__gt=UNPLANNED, next_start_at__lt=now - OVERDUE_AFTER)
    full = full_groups(Engine())
    return late & ~Q(group__in=full) if full else late
