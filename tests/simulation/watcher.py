"""Watcher: looks at the database after every step, and has every change judged."""

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

from tests.simulation.rows import JobRow, RunRow, count_changes, read_ends_of_pauses, read_jobs, read_runs
from tests.simulation.slots import Timeline

if TYPE_CHECKING:
    from tests.simulation.node import Node
    from tests.simulation.spec import Spec
    from tests.simulation.world import World


@dataclass(frozen=True)
class Event:
    """A step: its name, the instant it was told, the node that took it (None: people), the order of ends it wrote."""

    name: str
    now: datetime
    node: "Node | None" = None
    order: list[int] = field(default_factory=list)
    unheard: bool = False
    """Whether the answer of the database was lost, so that nobody was told of what was written."""


@dataclass(frozen=True)
class Change:
    """What one step has made of the jobs and runs."""

    event: Event
    jobs_before: dict[int, JobRow]
    jobs: dict[int, JobRow]
    runs: list[tuple[RunRow | None, RunRow]]
    """Runs that are new or open, before and after."""
    gone: list[RunRow]
    """Open runs that were there before and are not any more, of jobs that still exist."""
    pauses_before: dict[str, datetime | None]
    pauses: dict[str, datetime | None]
    """The paused groups, and until when each is."""

    def ended_at(self, job: JobRow) -> datetime | None:
        """Return the instant from which the job, or its group, is not paused any more, if this step has ended a pause.

        A pause whose time was over has ended then, even if nobody has seen it.
        """
        names = {"", job.group} & self.pauses_before.keys() - self.pauses.keys()
        untils = [self.pauses_before[name] for name in names]
        before = self.jobs_before.get(job.pk)
        if before and before.paused_at and not job.paused_at:
            untils.append(before.paused_until)
        return max((min(self.event.now, until or self.event.now) for until in untils), default=None)

    @property
    def begun(self) -> list[RunRow]:
        """Runs that were claimed."""
        return [after for before, after in self.runs if after.is_living and not (before and before.is_living)]

    @property
    def ended(self) -> list[RunRow]:
        """Runs that ended, in the order in which their ends were written."""
        ended = [after for before, after in self.runs if before and before.is_open and not after.is_open]
        rank = {pk: number for number, pk in enumerate(self.event.order)}
        return sorted(ended, key=lambda run: rank.get(run.pk, 0))


class Watcher:
    """Remembers every row there ever was, also those that were pruned since."""

    def __init__(self, world: "World") -> None:
        self.world = world
        self.jobs: dict[int, JobRow] = {}
        self.runs: dict[int, RunRow] = {}
        self.open: set[int] = set()
        self.pauses: dict[str, datetime | None] = {}
        self.pruned = False
        self.clock_went_back = False
        self.timelines: dict[int, Timeline] = defaultdict(Timeline)
        self.failures: dict[int, int] = defaultdict(int)
        self.notices_owed: Counter[int] = Counter()
        """Of jobs whose break was written, and nobody has heard so."""
        self.broken: set[int] = set()
        self.bent: set[int] = set()
        """Jobs whose count of living runs was bent, until the next sweep."""
        self.stale: set[int] = set()
        """Jobs whose definition was changed past their plan, until the next sweep."""
        self.declared_dead: set[str] = set()
        """Instances that some process has declared dead: what they claim before they know it is anyone's to close."""
        self.spoiled: set[str] = set()
        """Jobs of which something could not be read at some time."""
        self.garbled: set[int] = set()
        """Jobs whose schedule nobody can read just now."""
        self.newest = 0
        self._changes = -1

    def spec(self, job: JobRow) -> "Spec":
        return self.world.specs[job.name]

    def look(self, event: Event) -> None:
        """Find out what a step has changed, and judge it; most steps have changed nothing."""
        from tests.simulation.rules import RULES

        changes = count_changes()
        if changes == self._changes and event.name not in ("rescue", "sweep"):
            return
        self._changes = changes
        change = self._change(event)
        for rule in RULES:
            rule(self, change)

    def _change(self, event: Event) -> Change:
        before, self.jobs = self.jobs, read_jobs()
        pauses_before, self.pauses = self.pauses, read_ends_of_pauses()
        found = read_runs(after=self.newest, also=self.open)
        gone = [self.runs.pop(pk) for pk in sorted(self.open - found.keys())]
        changed = [(self.runs.get(pk), run) for pk, run in found.items()]
        self.runs |= found
        self.open = {pk for pk, run in found.items() if run.is_open}
        self.newest = max(self.newest, *found, 0)
        self._forget_deleted(before.keys() - self.jobs.keys())
        gone = [run for run in gone if run.job_id in self.jobs]
        return Change(event, before, self.jobs, changed, gone, pauses_before, self.pauses)

    def forget(self, run: int) -> None:
        """Have no row expected of a run that others delete; the slot that it decided stays decided."""
        self.runs.pop(run, None)
        self.open.discard(run)

    def _forget_deleted(self, jobs: Any) -> None:
        for pk in jobs:
            self.timelines.pop(pk, None)
        if jobs:
            self.runs = {pk: run for pk, run in self.runs.items() if run.job_id not in jobs}
            self.open &= self.runs.keys()
