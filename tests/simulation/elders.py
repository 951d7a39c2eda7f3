"""Elders: processes of an earlier release, which cannot read the schedules of some jobs that people made."""

from contextlib import AbstractContextManager, nullcontext
from datetime import datetime
from typing import TYPE_CHECKING, Any
from unittest import mock

from scheduler.conf import conf
from scheduler.models import fields
from scheduler.models.job_columns import UNABLE
from scheduler.models.stored import Unreadable, write_schedule
from tests.simulation.rows import REFUSAL, Violation, read_instances

if TYPE_CHECKING:
    from tests.simulation.node import Node
    from tests.simulation.spec import Spec
    from tests.simulation.watcher import Change, Watcher
    from tests.simulation.world import World

NEWS = ('"type":"daily"', '"jitter"', '"from_completion"')
"""What an earlier release does not know, as it stands in the text of a schedule."""


def boot_elder(world: "World") -> str:
    """An old process comes back while new ones work, as in a rolling release."""
    if sum(node.exists for node in world.nodes) > 3:
        return ""
    node = world.boot()
    node.unknown = world.rng.choice(NEWS)
    return f"boot {node.name}, which does not know {node.unknown}"


def eyes_of(node: "Node") -> AbstractContextManager[Any]:
    """Have schedules read as the release of a node reads them."""
    if not node.unknown:
        return nullcontext()
    read, code = fields.read_schedule, node.world.texts_of_code()

    def read_old(text: str) -> Any:
        if node.unknown in text and text not in code:
            return Unreadable(text, f"{node.unknown} is unknown")
        return read(text)

    return mock.patch.object(fields, "read_schedule", read_old)


def _can_read(node: "Node", spec: "Spec") -> bool:
    return not node.unknown or spec.by_code or node.unknown not in write_schedule(spec.schedule())


def _is_alive(node: "Node", now: datetime) -> bool:
    is_there = node.exists and node.joined and node.engine.instance_id.hex in read_instances()
    return is_there and (now - node.beat_at).total_seconds() < conf.INSTANCE_TTL_SECONDS


def nothing_is_set_aside(watcher: "Watcher", change: "Change") -> None:
    """No job is orphaned here, and none is called invalid that a living process can read (I17).

    What the database refuses is said, and waits for its next try. So is what nobody can read.
    """
    for pk, job in change.jobs.items():
        before = change.jobs_before.get(pk)
        if before and (before.problem, before.orphaned_at) == (job.problem, job.orphaned_at):
            continue
        is_unread = job.problem.startswith(UNABLE) and (pk in watcher.garbled or _nobody_reads(watcher, change, pk))
        if job.orphaned_at or not (is_unread or job.problem in ("", f"{UNABLE}{REFUSAL}")):
            raise Violation(f"I17: {job.name} was set aside: {job.problem}")


def _nobody_reads(watcher: "Watcher", change: "Change", pk: int) -> bool:
    """Whether no living process can read a job. Of one that nobody could read for a while, all may think so still."""
    job, now = change.jobs[pk], change.event.now
    takers = (node for node in watcher.world.nodes if node.engine.takes.include(job.group))
    readers = (node for node in takers if _can_read(node, watcher.spec(job)) and _is_alive(node, now))
    return job.name in watcher.spoiled or watcher.clock_went_back or not any(readers)
