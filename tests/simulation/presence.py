"""Presence: who is taken for dead, and what those who stop leave behind."""

from typing import TYPE_CHECKING

from scheduler.conf import conf
from scheduler.engine.base import HUNG_AFTER
from tests.simulation.rows import Violation, read_instances

if TYPE_CHECKING:
    from tests.simulation.node import Node
    from tests.simulation.watcher import Change, Watcher


def rescue_leaves_nothing(watcher: "Watcher", change: "Change") -> None:
    """After a rescue no run is left to an instance that is gone (I7)."""
    if change.event.name == "rescue":
        living = [watcher.runs[pk] for pk in watcher.open if watcher.runs[pk].is_living]
        left = [run.pk for run in living if run.instance_id not in read_instances()]
        if left:
            raise Violation(f"I7: runs {left} belong to nobody after a rescue")


def only_the_dead_are_rescued(watcher: "Watcher", change: "Change") -> None:
    """A rescue closes no run of a process that is there and has renewed its heartbeat within the ttl (I7).

    On its own host a process that goes on may be silent for longer: many write to one file of SQLite.
    """
    asking = change.event.node
    if change.event.name != "rescue" or asking is None or watcher.clock_went_back:
        return
    alive = {node.engine.instance_id.hex for node in watcher.world.nodes if _is_alive(node, asking, change)}
    for run in change.ended:
        if run.instance_id in alive - watcher.declared_dead:
            raise Violation(f"I7: run {run.pk} was closed as {run.status}, and its process is alive")
    known = {node.engine.instance_id.hex for node in watcher.world.nodes if node.joined}
    watcher.declared_dead |= known - read_instances()


def _is_alive(node: "Node", asking: "Node", change: "Change") -> bool:
    is_seen = node.joined and not node.frozen and node.process.host == asking.process.host
    silent, ttl = (change.event.now - node.beat_at).total_seconds(), conf.INSTANCE_TTL_SECONDS
    return node.exists and silent < (ttl * HUNG_AFTER if is_seen else ttl)


def a_stop_gives_back_what_did_not_start(watcher: "Watcher", change: "Change") -> None:
    """A process that stops loses no run but those that it had begun; one whose claim is in doubt may not know them."""
    node = change.event.node
    if change.event.name != "close_as_lost" or node is None or node.claim_in_doubt:
        return
    for run in change.ended:
        if not watcher.world.journal.statuses(run.pk, run.token):
            raise Violation(f"I18: run {run.pk} was lost by a stop although it had not begun")
