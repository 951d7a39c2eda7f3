"""Loaded: what becomes of the plan of a job that `loaddata` stores."""

from typing import Any

from scheduler.models.job import Job

LOADED = "loaded"
"""What a plan is made from that `loaddata` brought: a plan of another time, or of another database."""


def replan_loaded(instance: Job, raw: bool = False, **sent: Any) -> None:
    """Have a job planned from now on that `loaddata` stores; for `pre_save`.

    Slots that passed while the dump lay in a file are no slots of this database. Whatever stops a job stops it still.
    """
    if not raw:
        return
    instance.replan_from = instance.next_run_at = None
    if not instance.is_set_aside:
        instance.make_stale()
        instance.plan_basis = LOADED
