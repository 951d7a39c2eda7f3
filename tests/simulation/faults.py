"""Faults: crashes, frozen processes, lost answers, outages, clocks that are set, reads that are old."""

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any
from unittest import mock

from django.db import IntegrityError

from scheduler.conf import conf
from scheduler.engine import claim
from scheduler.engine.limits import jobs_taken
from scheduler.models import Job, RunLog
from tests.simulation.elders import boot_elder
from tests.simulation.node import Node
from tests.simulation.rows import REFUSAL, read_pauses
from tests.simulation.world import World
from tests.simulation.zones import move

MOST_NODES = 4
OLD_SLOTS = 10


def crash(world: World) -> str:
    """A process is killed, whatever it is doing."""
    node = _choose(world, [node for node in world.nodes if node.exists])
    return "" if node is None else _did(node, "crash", node.crash)


def boot(world: World) -> str:
    if sum(node.exists for node in world.nodes) >= MOST_NODES:
        return ""
    return f"boot {world.boot().name}"


def freeze(world: World) -> str:
    """A process does nothing any more, and does not know it."""
    node = _choose(world, world.awake)
    if node is None:
        return ""
    node.frozen = True
    return f"freeze {node.name}"


def thaw(world: World) -> str:
    """A frozen process goes on where it was."""
    node = _choose(world, [node for node in world.nodes if node.exists and node.frozen])
    if node is None:
        return ""
    node.frozen = False
    return f"thaw {node.name}"


def stop(world: World) -> str:
    """A process is asked to stop, and does so step by step."""
    node = _choose(world, [node for node in world.awake if node.joined and not node.stopping])
    return "" if node is None else _did(node, "stop", node.stop)


def outage(world: World) -> str:
    """Every process is gone for hours."""
    for node in world.nodes:
        if node.exists:
            node.crash()
    seconds = world.rng.choice((90, 1000, 10_000, 200_000))
    world.pass_time(seconds)
    return f"outage of {seconds} s"


def starve(world: World) -> str:
    """So many others write to the file that no heartbeat gets through for longer than the ttl."""
    world.pass_time(conf.INSTANCE_TTL_SECONDS + 10)
    return "no heartbeat gets through"


def write_in_doubt(world: World) -> str:
    """The ends of runs are committed, and the answer of the database is lost."""
    node = _choose(world, [node for node in world.awake if node.ends])
    if node is None:
        return ""
    node.write(answer_lost=True)
    return f"{node.name} writes, unheard"


def claim_in_doubt(world: World) -> str:
    """A claim is committed, and the answer of the database is lost."""
    node = _choose(world, _claimers(world))
    if node is None or not node.may_claim():
        return ""
    node.now, node.claim_in_doubt = world.clock.now(), True
    claim.claim_due(node.engine, node.now, ahead=world.ahead, limit=node.capacity())
    world.observe("claim_due", node)
    return f"{node.name} claimed, unheard"


def stale_claim(world: World) -> str:
    """A node claims what it read a while ago: somebody else has acted between its reading and its writing."""
    claimer = _choose(world, _claimers(world))
    if claimer is None or not claimer.may_claim():
        return ""
    claimer.now = world.clock.now()
    read = list(jobs_taken(claimer.engine.takes, Job.objects.due(claimer.now + world.ahead)))
    meanwhile = _meanwhile(world, claimer)
    with mock.patch.object(claim, "read_rows", _first_answering(read, claimer.now, claim.read_rows)):
        claims = claim.claim_due(claimer.engine, claimer.now, ahead=world.ahead, limit=claimer.capacity())
    claimer.hand_over(claims)
    world.observe("claim_due", claimer)
    return f"{claimer.name} claimed what it read before: {meanwhile}"


def refused_claim(world: World) -> str:
    """The database refuses the rows of a claim, though no slot of them is in the ledger: all together, then the first.

    A column that another release has added, or a trigger, is no reason to pass a slot.
    """
    node = _choose(world, _claimers(world))
    if node is None or not node.may_claim() or not node.capacity():
        return ""
    node.now = world.clock.now()
    with mock.patch.object(claim, "insert_runs", _refusing(2, claim.insert_runs)):
        claims = claim.claim_due(node.engine, node.now, ahead=world.ahead, limit=node.capacity())
    node.hand_over(claims)
    world.observe("claim_due", node)
    return f"the database has refused a claim of {node.name}"


def _claimers(world: World) -> list[Node]:
    return [node for node in world.awake if node.serves and node.joined and not node.stopping and not node.unknown]


def _refusing(times: int, insert_runs: Callable[..., None]) -> Callable[..., None]:
    """Return what refuses so many inserts of rows, and then no more."""
    refusals = [IntegrityError(REFUSAL) for _ in range(times)]

    def insert(using: str, runs: Sequence[RunLog]) -> None:
        if runs and refusals:
            raise refusals.pop()
        insert_runs(using, runs)

    return insert


def _meanwhile(world: World, claimer: Node) -> str:
    """Another node does a whole pass, or people do something."""
    from tests.simulation.people import ACTS

    other = _choose(world, [node for node in world.awake if node is not claimer])
    if other is not None and world.rng.random() < 0.5:
        while world.dispatch(other):
            pass
        return f"a pass of {other.name}"
    did = ACTS[world.rng.choice(("pause", "edit", "edit_by_api", "disable", "run_by_hand"))](world)
    world.observe(did or "nothing")
    return did


def _first_answering(read: list[Job], now: datetime, read_rows: Callable[..., Any]) -> Callable[..., Any]:
    """Answer the first question for due jobs with what was read before."""
    paused = read_pauses(now)
    answers = [[job for job in read if not paused & {"", job.group}]]

    def answer(rows: Any) -> Any:
        return answers.pop() if answers else read_rows(rows)

    return answer


def clock_forward(world: World) -> str:
    seconds = world.rng.choice((5, 90, 3600, 7200))
    world.set_clock(world.clock.now() + timedelta(seconds=seconds))
    return f"clock forward {seconds} s"


def clock_back(world: World) -> str:
    """Half of the time to where an interval that begins anew comes upon a slot that has been decided."""
    now = world.clock.now()
    instants = _one_interval_before_decided_slots(world)
    if instants and world.rng.random() < 0.5:
        world.set_clock(world.rng.choice(instants))
    else:
        world.set_clock(now - timedelta(seconds=world.rng.choice((5, 90, 3600, 7200))))
    return f"clock back {(now - world.clock.now()).total_seconds():g} s"


def _one_interval_before_decided_slots(world: World) -> list[datetime]:
    newest = RunLog.objects.order_by("-scheduled_for", "-pk").select_related("job")[:OLD_SLOTS]
    found = [(run.scheduled_for, run.job.next_run_at, world.specs[run.job.name].interval) for run in newest]
    return [slot - every for slot, next_run_at, every in found if every and next_run_at and slot < next_run_at]


def abandon(world: World) -> str:
    """A run is stuck and given up."""
    return _to_a_living_run(world, "abandon", Node.abandon)


def time_out(world: World) -> str:
    """A run is over its time."""
    return _to_a_living_run(world, "time_out", Node.time_out)


def _to_a_living_run(world: World, name: str, act: Callable[[Node, int], None]) -> str:
    node = _choose(world, [node for node in world.awake if node.living])
    if node is None:
        return ""
    pk = world.rng.choice(list(node.living))
    act(node, pk)
    return f"{name} run {pk} of {node.name}"


def _choose(world: World, nodes: list[Node]) -> Node | None:
    return world.rng.choice(nodes) if nodes else None


def _did(node: Node, name: str, act: Callable[[], None]) -> str:
    act()
    return f"{name} {node.name}"


FAULTS: dict[str, Callable[[World], str]] = {
    "crash": crash, "boot": boot, "boot_elder": boot_elder, "freeze": freeze, "thaw": thaw, "stop": stop,
    "outage": outage, "write_in_doubt": write_in_doubt, "claim_in_doubt": claim_in_doubt, "stale_claim": stale_claim,
    "refused_claim": refused_claim, "clock_forward": clock_forward, "clock_back": clock_back, "abandon": abandon,
    "time_out": time_out, "starve": starve, "move": move,
}  # fmt: skip
