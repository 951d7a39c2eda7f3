"""Sync: make the jobs in the database follow the tasks in the code. Safe when several processes boot at once."""

import logging
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import transaction

from scheduler.engine.base import Engine
from scheduler.engine.circles import set_circles_aside
from scheduler.engine.dependencies import replan_dependents
from scheduler.engine.write import is_refusal, rewrite
from scheduler.models import UNPLANNED, Instance, Job
from scheduler.models.job import WHERE_IT_GOES_ON
from scheduler.registry import Task

logger = logging.getLogger("scheduler")

REFUSED = "The database does not take what the code says of it: "

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
    returned = take_back(engine, engine.registry.names())
    orphaned = _set_aside(engine, now)
    set_circles_aside(engine)
    return Synced(created, changed, orphaned, returned)


def ensure_job(engine: Engine, name: str, now: datetime) -> None:
    """Create the job of a registered task if no start of the scheduler has done so yet."""
    task = engine.registry.find(name)
    if task is not None and not Job.objects.using(engine.using).filter(name=name).exists():
        _create(engine, [task], now)


def _create(engine: Engine, tasks: list[Task], now: datetime) -> int:
    """Insert the jobs at once, or else those that nobody has made yet one by one: a bad one costs no other its place.

    No conflict is left to the database to ignore: SQLite and MySQL then ignore, or bend, what is wrong as well.
    """
    if not tasks:
        return 0
    jobs = [Job(name=task.name, created_at=now, **definition(task)) for task in tasks]
    names = {job.name for job in jobs}
    try:
        with transaction.atomic(using=engine.using):
            Job.objects.using(engine.using).bulk_create(jobs)
        created = len(jobs)
    except Exception as error:
        if not is_refusal(error):
            raise
        there = _names_among(engine, names)
        created = sum(_insert(engine, job) for job in jobs if job.name not in there)
    replan_dependents(engine.using, names)
    return created


def _names_among(engine: Engine, names: Collection[str]) -> set[str]:
    return set(Job.objects.using(engine.using).filter(name__in=names).values_list("name", flat=True))


def _insert(engine: Engine, job: Job) -> bool:
    """Insert one job. Of one that the database refuses, its name is kept, with the reason as its problem."""
    try:
        with transaction.atomic(using=engine.using):
            job.save(using=engine.using, force_insert=True)
    except Exception as error:
        if job.name in _names_among(engine, [job.name]):  # another process has just made it
            return False
        columns = _refused(job.name, error)
        kept = Job(name=job.name, task=job.task, source=job.source, created_at=job.created_at, **columns)
        Job.objects.using(engine.using).bulk_create([kept], ignore_conflicts=True)
        return False
    return True


def _refused(name: str, error: Exception) -> dict[str, Any]:
    """Return the columns of a job whose definition cannot be stored: it does not start, and says why.

    Raises the error again when it is none of the definition's.
    """
    if not is_refusal(error):
        raise error
    problem = f"{REFUSED}{error}"
    logger.error("Job %r: %s", name, problem, extra={"action": "job_refused", "job": name})
    return {"problem": problem, "next_run_at": None, "next_start_at": None}


def _follow(engine: Engine, job: Job, task: Task) -> int:
    """Bring the columns that no person overrode up to date; one write, so that a job never has half a definition."""
    if not _changes_by_code(job, task):
        return 0
    row = Job.objects.using(engine.using).filter(pk=job.pk)
    try:
        return rewrite(row, lambda stored: _changes_by_code(stored, task))
    except Exception as error:
        return row.update(**_refused(job.name, error))


def _changes_by_code(job: Job, task: Task) -> dict[str, Any]:
    """Return the columns in which a job that the code made, as people left it, is behind its code."""
    if not job.source:
        return {}
    changes = differences_from_code(job, task, keep=job.overridden_fields)
    if job.problem.startswith(REFUSED):
        changes |= {"problem": "", "next_start_at": UNPLANNED}
    return changes


def differences_from_code(job: Job, task: Task, *, keep: Collection[str] = ()) -> dict[str, Any]:
    """Return the columns of a job that its code wants otherwise, as the code wants them, but for those to keep."""
    wanted = definition(task)
    return {name: wanted[name] for name in CODE_COLUMNS if name not in keep and getattr(job, name) != wanted[name]}


def take_back(engine: Engine, tasks: Collection[str]) -> int:
    """Let the orphans whose tasks are there again go on where they stood; returns how many.

    Nothing could run their slots meanwhile, so the misfire policy decides on them, as after any other time in which
    nothing ran. Those that were given another schedule meanwhile, or were enabled, are planned from now on.
    """
    orphans = Job.objects.using(engine.using).filter(orphaned_at__isnull=False, task__in=tasks)
    if not orphans.exists():
        return 0
    return orphans.update(orphaned_at=None, problem="", next_run_at=WHERE_IT_GOES_ON, next_start_at=UNPLANNED)


def _set_aside(engine: Engine, now: datetime) -> int:
    """Orphan the jobs whose task neither this process nor any other live instance registers."""
    jobs = Job.objects.using(engine.using).filter(orphaned_at__isnull=True)
    strangers = list(jobs.exclude(task__in=engine.registry.names()).only("pk", "task", "source"))
    served = served_elsewhere(engine, now) if strangers else set()
    orphans = [job for job in strangers if job.task not in served]
    count = 0
    for job in orphans:
        problem = engine.registry.why_missing(job.task, job.source)
        count += jobs.filter(pk=job.pk).update(orphaned_at=now, problem=problem, next_start_at=None)
    if orphans:
        take_back(engine, served_elsewhere(engine, now))  # whoever joined meanwhile has looked too early
    return count


def served_elsewhere(engine: Engine, now: datetime) -> set[str]:
    """Return the names of the tasks that other live instances look for due jobs of."""
    others = Instance.objects.using(engine.using).dispatching().alive(engine.dead_before(now))
    others = others.exclude(pk=engine.instance_id)
    return {name for tasks in others.values_list("tasks", flat=True) for name in tasks}
