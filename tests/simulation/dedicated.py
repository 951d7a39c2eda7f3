"""Dedicated: processes that take the jobs of some groups only. What they claim is theirs, and no slot is left out."""

from random import Random
from typing import TYPE_CHECKING

from scheduler.models import ALL_GROUPS, Instance, TakenGroups
from tests.simulation.draw import GROUPS
from tests.simulation.rows import Violation

if TYPE_CHECKING:
    from tests.simulation.watcher import Change, Watcher
    from tests.simulation.world import World


def taken_by(node: str, seed: int | str) -> TakenGroups:
    """Return what a process takes: all groups, or one, or all but one. Drawn apart from everything else."""
    rng = Random(f"groups of {node} of {seed}")
    if rng.random() < 0.4:
        return ALL_GROUPS
    chosen = frozenset({rng.choice([*GROUPS])})
    return TakenGroups(only=chosen) if rng.random() < 0.4 else TakenGroups(but=chosen)


def let_all_take_all(world: "World") -> None:
    """At rest every group has a process."""
    for node in world.nodes:
        node.engine.takes = ALL_GROUPS
    Instance.objects.update(groups={})


def what_is_claimed_is_taken(watcher: "Watcher", change: "Change") -> None:
    """A run begins in a process that takes the group of its job (I15)."""
    node = change.event.node
    for run in change.begun if node is not None and node.serves else ():
        job = change.jobs_before.get(run.job_id) or change.jobs[run.job_id]
        if not node.engine.takes.include(job.group):
            raise Violation(f"I15: {node.name}, which takes {node.engine.takes}, has claimed {run.pk} of {job.group!r}")
