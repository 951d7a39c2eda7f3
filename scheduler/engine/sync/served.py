"""Served: which tasks the other live processes run."""

from datetime import datetime

from scheduler.engine.base import Engine
from scheduler.models import Instance


def served_elsewhere(engine: Engine, now: datetime) -> set[str]:
    """Return the names of the tasks that other live instances look for due jobs of, or that a test leaves out."""
    others = Instance.objects.using(engine.using).dispatching().alive(engine.dead_before(now))
    others = others.exclude(pk=engine.instance_id)
    return set(engine.not_played).union(*others.values_list("tasks", flat=True))
