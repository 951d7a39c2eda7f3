"""Routine: what healthy processes do all the time."""

from collections.abc import Callable
from datetime import timedelta

from scheduler.models import Job, Status
from tests.simulation.node import Living, Node
from tests.simulation.rows import STOPPED
from tests.simulation.world import World

Acted = str
"""What was done, in words; empty when there was nothing to do."""


def dispatch(world: World) -> Acted:
    """A node takes one step of its dispatcher, or a whole pass."""
    if not world.awake:
        return ""
    node, whole = world.rng.choice(world.awake), world.rng.random() < 0.6
    while world.dispatch(node) and whole:
        pass
    return ""


def start(world: World) -> Acted:
    """A worker starts what is due; some gates are closed, and some handlers kill their process."""
    ready = [node for node in world.awake if node.startable()]
    if not ready:
        return ""
    node = world.rng.choice(ready)
    queued = world.rng.choice(node.startable())
    run = queued[1].run
    node.start(queued, gate_closed=world.rng.random() < 0.03)
    spec = world.specs[run.job.name]
    if spec.poison and run.pk in node.living:
        node.crash()
        return f"{node.name} is killed by run {run.pk}"
    return f"{node.name} starts {run.pk} of {run.job.name}"


def end(world: World) -> Acted:
    """A handler ends, in one way or another."""
    busy = [node for node in world.awake if node.living]
    if not busy:
        return ""
    node = world.rng.choice(busy)
    pk = world.rng.choice(list(node.living))
    status = _end(world, node, pk, node.living[pk])
    return f"{node.name} ends {pk}: {status}"


def _end(world: World, node: Node, pk: int, living: Living) -> str:
    spec = world.specs[living.claimed.job.name]
    chance = world.rng.random()
    if living.stop_reason and chance < 0.7:
        if living.stop_reason in ("shutdown", "lease"):
            node.end(pk, Status.LOST, reason=STOPPED, blameless=True)
            return "stopped"
        node.end(pk, Status.CANCELLED, reason=f"stopped when asked to: {living.stop_reason}")
        return Status.CANCELLED
    if chance < spec.failing:
        errors = world.rng.random() < 0.2
        node.end(pk, Status.SUCCEEDED if errors else Status.FAILED, **({"totals": {"errors": 1}} if errors else {}))
        return "with errors" if errors else Status.FAILED
    if chance > 0.97:
        node.end(pk, Status.POSTPONED, postponed_by=timedelta(seconds=world.rng.choice((5, 60))))
        return Status.POSTPONED
    node.end(pk, Status.SUCCEEDED)
    return Status.SUCCEEDED


def write(world: World) -> Acted:
    """A recorder writes what has ended."""
    ready = [node for node in world.awake if node.ends]
    if ready:
        node = world.rng.choice(ready)
        node.write()
        world.observe("write", node)
    return ""


def beat(world: World) -> Acted:
    if world.awake:
        world.rng.choice(world.awake).beat()
    return ""


def look_after(world: World) -> Acted:
    if world.awake:
        world.rng.choice(world.awake).look_after()
    return ""


def pass_time(world: World) -> Acted:
    """Time goes by: a little, a minute, or exactly until something is due. Hearts beat, mostly."""
    seconds = _how_long(world)
    world.pass_time(seconds)
    if seconds > 3 and world.rng.random() < 0.9:
        for node in world.awake:
            node.beat()
    return f"+{seconds:g} s"


def _how_long(world: World) -> float:
    starts = Job.objects.filter(stale=False, wake_at__isnull=False).order_by("wake_at")
    due = starts.values_list("wake_at", flat=True).first()
    left = (due - world.clock.now()).total_seconds() if due else 0.0
    if 0 < left < 4000 and world.rng.random() < 0.5:
        return max(0.0, left - world.rng.choice((0.0, world.ahead.total_seconds(), 0.25)))
    return world.rng.choice((0.25, 1, 2, 5, 10, 20, 30, 45, 70))


ROUTINE: dict[str, Callable[[World], Acted]] = {
    "dispatch": dispatch, "start": start, "end": end, "write": write, "beat": beat, "look_after": look_after,
    "pass_time": pass_time,
}  # fmt: skip
