"""Checkpoints: what handlers save while they run, and that the next attempt goes on with it. I5, I6."""

import json
from collections.abc import Callable
from typing import TYPE_CHECKING

from scheduler.engine.running import save_state
from scheduler.models import Job, Status
from tests.simulation.rows import Violation

if TYPE_CHECKING:
    from tests.simulation.watcher import Change, Watcher
    from tests.simulation.world import World

OFTEN = {"save": 6}


def save(world: "World") -> str:
    """A handler saves its state; it learns whether the run is still its own."""
    busy = [node for node in world.awake if node.living]
    if not busy:
        return ""
    node = world.rng.choice(busy)
    pk = world.rng.choice(list(node.living))
    living, run = node.living[pk], node.living[pk].claimed.run
    living.saved += 1
    if not save_state(node.engine.using, pk, run.token, {"n": living.saved}):
        living.stop_reason = living.stop_reason or "lease"
        return f"{node.name} saves nothing of {pk}"
    world.saved[pk] = living.saved
    return f"{node.name} saves {living.saved} of {pk}"


def only_the_living_save(watcher: "Watcher", change: "Change") -> None:
    """A row has a state only while its run lives (I5)."""
    for _, run in change.runs:
        if run.checkpoint is not None and not run.is_living:
            raise Violation(f"I5: run {run.pk} is {run.status} and has a state: {run.checkpoint}")


def what_was_saved_is_kept(watcher: "Watcher", change: "Change") -> None:
    """The job has what a run that did not succeed had saved (I5); of runs that end together, what the last one had."""
    last = {run.job_id: run for run in change.ended}
    for pk, run in last.items():
        if run.pk not in watcher.world.saved or run.status == Status.SUCCEEDED:
            continue
        state, saved = Job.objects.values_list("state", flat=True).get(pk=pk), {"n": watcher.world.saved[run.pk]}
        if state != saved:
            raise Violation(f"I5: run {run.pk} is {run.status} and had saved {saved}; its job has {json.dumps(state)}")


ACTS: dict[str, Callable[["World"], str]] = {"save": save}
