"""Survey: how the scheduler stands, by the database and this process, in a constant number of queries."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.db import DatabaseError

from scheduler.conf import conf
from scheduler.engine.base import Engine
from scheduler.engine.db.migrated import awaits_migration
from scheduler.engine.db.shared_time import shared_now
from scheduler.engine.views.expected import UNMET, unmet_expectations
from scheduler.engine.views.failing import failing_jobs
from scheduler.engine.views.pauses import Paused, paused_groups
from scheduler.models import Instance
from scheduler.problems import jobs as jobs_of
from scheduler.problems import process
from scheduler.problems.base import Problem, Severity
from scheduler.problems.groups import of_groups, of_queues
from scheduler.problems.notices import of_notices, of_pings, of_unknown_jobs
from scheduler.runtime.here import here


@dataclass(frozen=True, slots=True)
class Survey:
    """What was found. `now` is None when the database gave no answer; then there are only `here` and `problems`."""

    here: dict[str, Any]
    problems: list[Problem]
    now: datetime | None = None
    instances: list[Instance] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    of_jobs: list[Problem] = field(default_factory=list)
    """Those of jobs, also where the scheduler is disabled and they are none."""
    paused: Paused = field(default_factory=dict)
    is_behind: bool = False
    """Whether jobs are overdue, or tasks have been due for long."""

    @property
    def running(self) -> list[Instance]:
        """The live instances that look for due jobs."""
        return [] if self.now is None else [one for one in self.instances if runs(one, self.now)]

    @property
    def is_disabled(self) -> bool:
        """Whether SCHEDULER_ENABLED is off here, no other process runs the scheduler, and nothing waits for one."""
        return self.now is not None and not conf.ENABLED and not self.running and not self.is_behind

    @property
    def oldest_overdue(self) -> tuple[str, timedelta] | None:
        """The job that has been overdue for longest, and for how long."""
        return next(((one.subject, one.values["time"]) for one in self.of_jobs if one.code == "overdue"), None)

    @property
    def degraded(self) -> bool:
        """Whether due work is not being run."""
        return any(one.severity is Severity.DEGRADED for one in self.problems)


def survey(now: datetime | None = None, paused: Paused | None = None, *, own: bool = True) -> Survey:
    """Look at everything once, but for what the caller knows. A database that is away is a problem, not an error.

    Without `own` nothing is said of this process that others do not see: each process gives the same answer then.
    """
    told = here() if own else {}
    try:
        return _survey(told, now or shared_now(Engine().using), paused_groups() if paused is None else paused)
    except DatabaseError as error:
        awaits = awaits_migration(Engine().using)
        found = Problem("must_migrate") if awaits else Problem("database_away", values={"error": type(error).__name__})
        return Survey(told, [found])


def _survey(told: dict[str, Any], now: datetime, paused: Paused) -> Survey:
    instances = list(Instance.objects.defer("tasks"))
    counts = jobs_of.counted(now)
    every_job = counts["total"] + counts.pop("carriers")
    stuck = jobs_of.stuck() if counts["stuck"] else []
    failing = failing_jobs(now) if counts.pop("failed_last") else []
    unmet = unmet_expectations(now) if counts.pop("watched") else []
    counts |= {"stuck": len(stuck), "failing": len(failing)}
    counts |= {code: sum(one.code == code for one in unmet) for code in UNMET}
    of_jobs = list(jobs_of.of_jobs(counts, stuck, failing, unmet, now))
    of_tasks = list(of_queues(now)) if counts.pop("with_overdue_tasks") else []
    found = Survey(told, [], now, instances, counts, of_jobs, paused, is_behind=bool(counts["overdue"] or of_tasks))
    if not found.is_disabled:
        found.problems.extend(process.of_instances(found.running, now, jobs=every_job, own=told.get("instance", "")))
        found.problems.extend([*of_groups(found.running, now), *of_tasks])
        found.problems.extend(process.of_this_process(told, instances) if told else ())
        found.problems.extend([*process.of_modules(), *process.of_activity_store(), *of_jobs])
        found.problems.extend(of_notices(now) if conf.NOTIFY else ())
        found.problems.extend(of_pings() if conf.SECRET_PINGS else ())
        found.problems.extend(of_unknown_jobs())
    return found


def is_alive(one: Instance, now: datetime) -> bool:
    """Whether an instance has beaten within its lease."""
    heartbeat: datetime = one.heartbeat_at
    return heartbeat >= Engine.dead_before(now)


def runs(one: Instance, now: datetime) -> bool:
    """Whether an instance is alive, and it is its work to look for due jobs."""
    return one.dispatches and is_alive(one, now)
