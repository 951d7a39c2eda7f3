"""Elsewhere: an executor that hands runs over by messages, which are lost, come twice, late, or after a cancel.

Who gets one is a process of its own: it claims the attempt or leaves it, as `run_attempt` does, and goes after that.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from functools import partial
from random import Random
from typing import TYPE_CHECKING, Any
from unittest import mock

from scheduler import register_executor
from scheduler.engine.base import Claimed
from scheduler.engine.claim import claim_due
from scheduler.engine.claim_promised import claim_waiting
from scheduler.engine.instances import join, leave
from scheduler.models import RunLog
from scheduler.policy import executor
from scheduler.runtime import taking
from tests.simulation.node import Node
from tests.simulation.spec import Spec

if TYPE_CHECKING:
    from tests.simulation.world import World

NAME = "elsewhere"
OPTIONS = {"executor": NAME, "handover_timeout": timedelta(seconds=30)}
OFTEN = {"deliver": 24}
PLACES = 3
AT_ONCE = timedelta(0)


class Elsewhere:
    """The messages that are on their way."""

    def __init__(self, seed: int | str, *, is_there: bool) -> None:
        self.is_there = is_there
        self.rng = Random(f"messages of {seed}")
        self.messages: list[int] = []
        self._jobs: set[str] = set()

    def choose(self, spec: Spec) -> None:
        """Have the runs of some jobs handed over."""
        if self.is_there and self.rng.random() < 0.7:
            self._jobs.add(spec.name)
            spec.options |= OPTIONS

    def kept(self, spec: Spec) -> dict[str, Any]:
        """Return the options that no change of a policy takes from a job."""
        return OPTIONS if spec.name in self._jobs else {}

    def send(self, run: int) -> None:
        """Send a message, which may be lost or come twice."""
        self.messages += [run] * self.rng.choice((0, 1, 1, 1, 1, 2))

    @contextmanager
    def known(self) -> Iterator[None]:
        """Have the executor registered."""
        with mock.patch.object(executor, "_executors", dict(executor._executors)):
            if self.is_there:
                register_executor(NAME, f"{__name__}.Elsewhere", label=NAME, hands_over=True)
            yield


def hand_over(node: Node, attempt_at: datetime | None, job_at: datetime | None) -> Iterator[str]:
    """The steps of a pass that hand runs over, as the last ones of `tick`. A process may die between them."""
    for name in sorted(node.engine.handovers):
        if attempt_at is not None and attempt_at <= node.now:
            claims = claim_waiting(node.engine, node.now, ahead=AT_ONCE, limit=PLACES, executor=name)
            for run in claims.handed:
                node.world.elsewhere.send(run.pk)
            yield "hand over"
        if job_at is not None and job_at <= node.now + node.world.ahead:
            claim_due(node.engine, node.now, ahead=node.world.ahead, limit=PLACES, executor=name)
            yield "promise"


class Consumer(Node):
    """The process to which the id of an attempt was sent."""

    serves = False

    def __init__(self, world: "World", number: int, host: str, run: int) -> None:
        super().__init__(world, number, host)
        self.workers, self.engine.handovers = 1, frozenset()
        self._run: int | None = run

    def _pass(self) -> Iterator[str]:
        run, self._run = self._run, None
        if run is not None:
            self.now, self._renewed = self.world.clock.now(), self.world.clock.monotonic()
            join(self.engine, self.process, self.now, started_by="attempt")
            self.beat_at, self.joined = self.now, True
            yield "join"
            self.now = self.world.clock.now()
            if self.joined and (claimed := self.take(run)):
                self._submit(claimed)
            yield "take"
        elif not (self.queue or self.living or self.ends):
            leave(self.engine)
            self.crash()
            yield "leave"

    def take(self, run: int) -> Claimed | None:
        """Claim the attempt, or have it handed over again."""
        return taking._claim(self.engine, self.world.clock, run)


def deliver(world: "World") -> str:
    """A message arrives, not always in the order in which they were sent."""
    messages = world.elsewhere.messages
    if not messages:
        return ""
    run = messages.pop(world.rng.randrange(len(messages)))
    if not RunLog.objects.handed_over().filter(pk=run).exists():
        return f"nobody wants run {run} any more"
    return f"run {run} is sent to {world.boot(partial(Consumer, run=run)).name}"


ACTS: dict[str, Callable[["World"], str]] = {"deliver": deliver}
