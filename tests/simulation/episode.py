"""Episode: one life of a world, drawn from a seed: steps at random, then rest, then the last judgement."""

from collections import Counter
from dataclasses import dataclass, field

from django.db import transaction

from scheduler.models import Job, RunLog, Status
from tests.simulation import checkpoints, elsewhere, final, strangers, users
from tests.simulation.dedicated import let_all_take_all
from tests.simulation.draw import draw_mood
from tests.simulation.faults import FAULTS
from tests.simulation.node import Node
from tests.simulation.people import ACTS, add
from tests.simulation.routine import ROUTINE
from tests.simulation.rows import Violation, read_pauses
from tests.simulation.world import World

STEPS = 80
MOST_ROUNDS = 80
LAST_STEPS_SHOWN = 60
ALL = ROUTINE | ACTS | FAULTS | strangers.ACTS | users.ACTS | elsewhere.ACTS | checkpoints.ACTS


@dataclass
class Episode:
    """What one episode has seen."""

    seed: int | str
    steps: Counter[str] = field(default_factory=Counter)
    rows: Counter[str] = field(default_factory=Counter)


def play(
    seed: int | str, steps: int = STEPS, *, elsewhere: bool = False, dedicated: bool = False, **often: float
) -> Episode:
    """Play an episode and leave no trace in the database; raises Violation with the seed and the last steps.

    `often` names steps that shall happen about so often for every hundred others. With `elsewhere`
    some jobs hand their runs over, `dedicated` processes take the jobs of some groups only.
    """
    world, episode = World(seed, elsewhere=elsewhere, dedicated=dedicated), Episode(seed)
    try:
        with transaction.atomic(), world.at_work():
            _live(world, episode, steps, often)
            come_to_rest(world)
            final.judge(world)
            episode.rows.update(run.status for run in world.watcher.runs.values())
            transaction.set_rollback(True)
    except Exception as error:
        story = "\n".join(world.trace[-LAST_STEPS_SHOWN:] + world.ledger())
        raise Violation(f"seed {seed}: {_told(world, error)}\nThe last steps:\n{story}") from error
    return episode


def _told(world: World, error: Exception) -> str:
    """Say what went wrong; where something cannot be read, any error means that it cost more than itself."""
    if not world.watcher.spoiled or isinstance(error, Violation):
        return f"{type(error).__name__}: {error}"
    return f"Violation: I17: one value of {sorted(world.watcher.spoiled)} stops others: {error!r}"


def _live(world: World, episode: Episode, steps: int, often: dict[str, float]) -> None:
    weights = draw_mood(world.rng) | (users.OFTEN if world.users.are_there else {})
    weights |= (elsewhere.OFTEN if world.elsewhere.is_there else {}) | checkpoints.OFTEN | often
    for _ in range(world.rng.choice((2, 3, 4))):
        world.observe(add(world))
    for _ in range(world.rng.choice((1, 2, 3))):
        world.boot()
    for name in world.rng.choices(list(weights), list(weights.values()), k=steps):
        step(world, name)
        episode.steps[name] += 1


def step(world: World, name: str) -> None:
    """Take one step, and have what it did judged."""
    did = ALL[name](world)
    if did:
        world.observe(did)


def come_to_rest(world: World) -> None:
    """Declare frozen processes dead, let them go on, and work until nothing is due any more."""
    for spec in world.specs.values():
        spec.poison, spec.failing = False, 0.0
    world.observe(strangers.restore(world) or "nothing")
    staying = [node for node in world.awake if node.serves and not node.stopping]
    for node in sorted(staying, key=lambda node: node.unknown)[2:]:
        node.crash()
    _keep_one_process(world)
    for _ in range(5):
        world.pass_time(20)
        _round(world)
    for node in world.nodes:
        node.frozen = False
    for _ in range(MOST_ROUNDS):
        _round(world)
        if _is_quiet(world):
            return
        world.pass_time(0.25)
    raise Violation(f"I17: still not at rest after {MOST_ROUNDS} rounds: {_unrest(world)}")


def _keep_one_process(world: World) -> None:
    if not any(node.serves and not node.stopping and not node.unknown for node in world.awake):
        world.boot()
    if world.dedicated:
        let_all_take_all(world)


def _round(world: World) -> None:
    """Every process that is awake does all it can at this instant."""
    _keep_one_process(world)
    while world.elsewhere.messages:
        world.observe(elsewhere.deliver(world))
    for node in world.awake:
        node.beat()
        while world.dispatch(node):
            pass
        _work_off(world, node)
    users.drain_at_rest(world)


def _work_off(world: World, node: Node) -> None:
    while node.startable() or node.living or node.ends:
        for queued in node.startable():
            node.start(queued)
        for pk in list(node.living):
            node.end(pk, Status.SUCCEEDED)
        node.write()
        world.observe("write", node)


def _is_quiet(world: World) -> bool:
    return not (_unrest(world) or any(node.queue or node.stopping or not node.serves for node in world.awake))


def _unrest(world: World) -> list[str]:
    """Return the runs that live, and the jobs that are due and that no pause of a group holds back."""
    now = world.clock.now()
    paused = read_pauses(now)
    due = [job.name for job in Job.objects.due(now) if not paused & {"", job.group}]
    return [str(run) for run in RunLog.objects.living()] + due
