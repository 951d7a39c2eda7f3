"""Sync: make the jobs in the database follow the tasks in the code. Safe when several processes boot at once."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import QuerySet

from scheduler.engine.base import Engine
from scheduler.engine.dependencies import replan_dependents
from scheduler.models import UNPLANNED, Instance, Job
from scheduler.registry import Task

CODE_COLUMNS = ("task", "schedule", "policy", "group", "priority", "kwargs", "description", "enabled", "source")
"""What the code decides about a job, except where a person overrode it."""


@dataclass(frozen=True, slots=True)
class Synced:
    """How many jobs one pass created, changed, orphaned and took back."""

    created: int = 0
    changed: int = 0
    orphaned: int = 0
    returned: int = 0


def definition(task: Task) -> dict[str, Any]:
    """Return the columns of a job as its task defines them."""
    return {
        "task": task.name,
        "schedule": task.schedule,
        "policy": task.policy,
        "group": task.group,
        "priority": task.priority,
        "kwargs": dict(task.kwargs),
        "description": task.description[:500],
        "enabled": task.enabled,
        "source": task.module[:255],
    }


def sync(engine: Engine, now: datetime) -> Synced:
    """Create missing jobs, change those whose code changed, set aside those without code, take back returning ones."""
    jobs = Job.objects.using(engine.using)
    present = {job.name: job for job in jobs.filter(name__in=engine.registry.names())}
    created = _create(engine, [task for task in engine.registry if task.name not in present], now)
    changed = sum(_follow(engine, present[task.name], task) for task in engine.registry if task.name in present)
    returned = _take_back(engine, jobs.filter(orphaned_at__isnull=False, task__in=engine.registry.names()))
    orphaned = _set_aside(engine, jobs.filter(orphaned_at__isnull=True).exclude(task__in=engine.registry.names()), now)
    return Synced(created, changed, orphaned, returned)


def ensure_job(engine: Engine, name: str, now: datetime) -> None:
    """Create the job of a registered task if no start of the scheduler has done so yet."""
    task = engine.registry.find(name)
    if task is not None and not Job.objects.using(engine.using).filter(name=name).exists():
        _create(engine, [task], now)


def _create(engine: Engine, tasks: list[Task], now: datetime) -> int:
    jobs = [Job(name=task.name, created_at=now, **definition(task)) for task in tasks]
    Job.objects.using(engine.using).bulk_create(jobs, ignore_conflicts=True)
    replan_dependents(engine.using, {job.name for job in jobs})
    return len(jobs)


def _follow(engine: Engine, job: Job, task: Task) -> int:
    """Bring the columns that no person overrode up to date; one write, so that a job never has half a definition."""
    changes = differences_from_code(job, task, keep=job.overridden_fields)
    if not job.source or not changes:
        return 0
    return Job.objects.using(engine.using).filter(pk=job.pk).update(**changes)


def differences_from_code(job: Job, task: Task, *, keep: Collection[str] = ()) -> dict[str, Any]:
    """Return the columns of a job that its code wants otherwise, as the code wants them, but for those to keep."""
    wanted = definition(task)
    return {name: wanted[name] for name in CODE_COLUMNS if name not in keep and getattr(job, name) != wanted[name]}


def _take_back(engine: Engine, orphans: QuerySet[Job]) -> int:
    return orphans.update(orphaned_at=None, problem="", next_start_at=UNPLANNED) if orphans.exists() else 0


def _set_aside(engine: Engine, jobs: QuerySet[Job], now: datetime) -> int:
    """Orphan the jobs whose task neither this process nor any other live instance registers."""
    strangers = list(jobs.only("pk", "task", "source"))
    served = served_elsewhere(engine, now) if strangers else set()
    count = 0
    for job in strangers:
        if job.task not in served:
            count += (
                Job.objects.using(engine.using)
                .filter(pk=job.pk, orphaned_at__isnull=True)
                .update(
                    orphaned_at=now,
                    problem=engine.registry.why_missing(job.task, job.source),
                    next_run_at=None,
                    next_start_at=None,
                )
            )
    return count


def served_elsewhere(engine: Engine, now: datetime) -> set[str]:
    """Return the names of the tasks that other live instances register."""
    others = Instance.objects.using(engine.using).alive(engine.dead_before(now)).exclude(pk=engine.instance_id)
    return {name for tasks in others.values_list("tasks", flat=True) for name in tasks}
