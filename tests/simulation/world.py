"""World: the nodes, the clock, the journal and what is known about the jobs."""

import random
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import datetime, timedelta
from unittest import mock

from django.test import override_settings

from scheduler.clock import SYSTEM_CLOCK, ManualClock
from scheduler.engine.instances import Process
from scheduler.models.stored import write_schedule
from scheduler.registry import register, registry
from tests.factories import T0
from tests.simulation.draw import GROUPS, draw_job
from tests.simulation.elsewhere import Elsewhere
from tests.simulation.journal import Journal
from tests.simulation.node import Node
from tests.simulation.spec import Spec
from tests.simulation.users import Users, define
from tests.simulation.watcher import Event, Watcher

TASK = "simulated"
HOSTS = ("north", "south")


class World:
    """Everything of one episode. The database is the ordinary one, and empty at the beginning."""

    def __init__(self, seed: int | str, *, elsewhere: bool = False, dedicated: bool = False) -> None:
        self.seed, self.rng = seed, random.Random(seed)
        self.dedicated = dedicated
        self.clock = ManualClock(T0)
        self.registry = registry
        self.journal = Journal()
        self.specs: dict[str, Spec] = {}
        self.nodes: list[Node] = []
        self.ahead = timedelta(seconds=self.rng.choice((0.0, 0.25)))
        self.saved: dict[int, int] = {}
        """What the handlers of runs have saved last, as far as they know."""
        self.notices: Counter[int] = Counter()
        self.order: list[int] = []
        self.unheard = False
        self.trace: list[str] = []
        self.watcher = Watcher(self)
        self.elsewhere = Elsewhere(seed, is_there=elsewhere)
        self.users = Users(seed)
        self.users.are_there &= not elsewhere
        self._booted = 0
        self.zone, self._in_zone = "UTC", ExitStack()

    @contextmanager
    def at_work(self) -> Iterator["World"]:
        """Have the public API go by this clock, know the task and the jobs that the code defines, and the groups."""
        known = registry.names()
        with (
            mock.patch.object(SYSTEM_CLOCK, "now", self.clock.now),
            override_settings(SCHEDULER_GROUPS=GROUPS),
            self.elsewhere.known(),
        ):
            try:
                register(TASK)(lambda: None)
                self.specs[TASK] = Spec(TASK, by_code=True)
                self._define_jobs_in_code()
                define(self)
                yield self
            finally:
                self._in_zone.close()
                for name in set(registry.names()) - set(known):
                    registry.remove(name)

    def _define_jobs_in_code(self) -> None:
        for number in range(self.rng.choice((0, 1, 2))):
            spec = draw_job(self.rng, f"code{number}", self.clock.now(), by_code=True)
            register(spec.name, schedule=spec.schedule(), group=spec.group, **spec.options)(lambda: None)
            self.specs[spec.name] = spec

    def move(self, zone: str) -> None:
        """Change the time zone of the project."""
        self.zone = zone
        self._in_zone.close()
        self._in_zone.enter_context(override_settings(TIME_ZONE=zone))

    def boot(self, kind: Callable[["World", int, str], Node] = Node) -> Node:
        """Start one more process."""
        self._booted += 1
        node = kind(self, self._booted, self.rng.choice(HOSTS))
        self.nodes.append(node)
        return node

    def is_gone(self, process: Process, asking: Node) -> bool:
        """Whether a process of the asking node's host is gone."""
        there = {node.process.pid for node in self.nodes if node.exists}
        return process.host == asking.process.host and process.pid not in there

    def goes_on(self, process: Process, asking: Node) -> bool:
        """Whether a process of the asking node's host is there and does not stand still."""
        return process.host == asking.process.host and process.pid in {node.process.pid for node in self.awake}

    def texts_of_code(self) -> set[str]:
        """Return the schedules that the code gives its jobs, as they are stored."""
        return {write_schedule(spec.schedule()) for spec in self.specs.values() if spec.by_code and not spec.users}

    @property
    def awake(self) -> list[Node]:
        """The processes that exist and are not frozen."""
        return [node for node in self.nodes if node.exists and not node.frozen]

    def pass_time(self, seconds: float) -> None:
        self.clock.advance(seconds)

    def set_clock(self, now: datetime) -> None:
        """Somebody sets the wall clock."""
        self.watcher.clock_went_back |= now < self.clock.now()
        self.clock.set(now)

    def observe(self, name: str, node: Node | None = None) -> None:
        """Have the watcher look at what a step has made of the database."""
        now = self.clock.now() if node is None else node.now
        who = "people" if node is None else node.name
        self.trace.append(f"{(self.clock.now() - T0).total_seconds():10.2f} {who:7} {name}")
        self.watcher.look(Event(name, now, node, self.order, unheard=self.unheard))
        self.order, self.unheard = [], False

    def ledger(self) -> list[str]:
        """Return what is known of every run, for people who look for the cause of a violation."""
        jobs = self.watcher.jobs
        return [
            f"{jobs[run.job_id].name if run.job_id in jobs else '?':8} {run.pk:3} {run.first:%H:%M:%S}"
            f"-{run.scheduled_for:%d %H:%M:%S} +{run.coalesced} #{run.attempt} {run.trigger} {run.status} {run.reason}"
            for run in self.watcher.runs.values()
        ]

    def dispatch(self, node: Node) -> bool:
        """Have a node take one step of its dispatcher; False at the end of a pass."""
        name = node.dispatch()
        if name:
            self.observe(name, node)
        return bool(name)
