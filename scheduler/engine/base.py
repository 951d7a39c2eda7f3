"""What every step of the engine is given."""

import uuid
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.db import router

from scheduler.conf import conf
from scheduler.models import Job, RunLog
from scheduler.registry import Registry, Task, registry


@dataclass(slots=True, kw_only=True)
class Engine:
    """One instance of the engine: who it is and which tasks it knows."""

    registry: Registry = field(default_factory=lambda: registry)
    instance_id: uuid.UUID = field(default_factory=uuid.uuid4)
    name: str = ""
    foreign_tasks: set[str] = field(default_factory=set)
    """Tasks that only other instances on this database register; their jobs are theirs to run."""
    lost_races: int = 0

    @property
    def using(self) -> str:
        """The database of the jobs, by the host project's router."""
        return router.db_for_write(Job)

    @staticmethod
    def dead_before(now: datetime) -> datetime:
        """Return the instant before which an instance must have beaten to count as dead."""
        return now - timedelta(seconds=conf.INSTANCE_TTL_SECONDS)


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
