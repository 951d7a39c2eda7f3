"""What every step of the engine is given."""

import uuid
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.db import router

from scheduler.conf import conf
from scheduler.engine.unable import Unable
from scheduler.models import ALL_GROUPS, Job, RunLog, TakenGroups
from scheduler.registry import Registry, Task, registry

HUNG_AFTER = 5
"""Times to live after which a process that lives is dead all the same where silence may only mean waiting."""


@dataclass(slots=True, kw_only=True)
class Engine:
    """One instance of the engine: who it is and which tasks it knows."""

    registry: Registry = field(default_factory=lambda: registry)
    instance_id: uuid.UUID = field(default_factory=uuid.uuid4)
    name: str = ""
    foreign_tasks: set[str] = field(default_factory=set)
    """Tasks that only other instances on this database register; their jobs are theirs to run."""
    was_refused: bool = False
    """Whether the database may not have taken what the code says of some job; only then is that looked for again."""
    not_played: frozenset[str] = frozenset()
    """Tasks of the code that a test leaves out; their jobs are left as they are."""
    unable: Unable = field(default_factory=Unable)
    """Jobs that this process cannot read or claim just now."""
    zones_told: frozenset[str] = frozenset()
    """The different zones of live processes of which the log has told."""
    handovers: frozenset[str] = frozenset()
    """Executors to which this process hands runs over. Where it names none, whatever is claimed starts here."""
    takes: TakenGroups = ALL_GROUPS
    """The groups whose jobs this process starts, or hands over."""
    lost_races: int = 0

    @property
    def using(self) -> str:
        """The database of the jobs, by the host project's router."""
        return router.db_for_write(Job)

    @staticmethod
    def dead_before(now: datetime) -> datetime:
        """Return the instant before which an instance must have beaten to count as dead."""
        return now - timedelta(seconds=conf.INSTANCE_TTL_SECONDS)

    @staticmethod
    def hung_before(now: datetime) -> datetime:
        """Return the instant before which an instance must have beaten to count as dead although its process lives."""
        return now - timedelta(seconds=HUNG_AFTER * conf.INSTANCE_TTL_SECONDS)


@dataclass(frozen=True, slots=True)
class Claimed:
    """A run that this instance may start: the claim has committed. `run.job` is the job as the claim wrote it."""

    run: RunLog
    task: Task

    @property
    def job(self) -> Job:
        """The job, as the claim wrote it."""
        return self.run.job

    @property
    def kwargs(self) -> dict[str, Any]:
        """The keyword arguments of the call: the run's own, else the job's."""
        kwargs: dict[str, Any] = self.job.kwargs if self.run.kwargs is None else self.run.kwargs
        return kwargs

    @property
    def start_at(self) -> datetime:
        """The instant to start at."""
        at: datetime = self.run.started_at or self.run.scheduled_for
        return at
