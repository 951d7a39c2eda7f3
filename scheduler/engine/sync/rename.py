"""Rename: the job of a task that has another name in the code by now keeps its row, and so its history."""

from datetime import datetime
from typing import Any

from django.db.models import QuerySet

from scheduler.engine.base import Engine
from scheduler.engine.db.transactions import rewrite
from scheduler.engine.events import CODE
from scheduler.engine.sync.served import served_elsewhere
from scheduler.models import Job
from scheduler.models.carriers import ONE_OFF_PREFIX, ONE_OFFS
from scheduler.registry import Task
from scheduler.schedules import dependent_kinds
from scheduler.schedules.linked import NAME_LENGTH


def rename_jobs(engine: Engine, now: datetime) -> int:
    """Give the jobs of renamed tasks their new name and task, and tell those that wait for them; returns how many.

    Once the new name has a job, or while code still registers the old one, here or in a live process, nothing is
    renamed: a process of the release before that starts again would create a second job, and both would run each slot.
    """
    renamed = _to_rename(engine)
    served = served_elsewhere(engine, now) if renamed else set()
    return sum(_rename(engine, task) for task in renamed if task.renamed_from not in served)


def keeping_old_names(engine: Engine, now: datetime) -> set[str]:
    """Return the new names whose jobs keep the old one, since live processes of the release before run them."""
    renamed = _to_rename(engine)
    served = served_elsewhere(engine, now) if renamed else set()
    return {task.name for task in renamed if task.renamed_from in served}


def _to_rename(engine: Engine) -> list[Task]:
    renamed = [task for task in engine.registry if task.renamed_from and task.renamed_from not in engine.registry]
    if not renamed:
        return []
    names = {name for task in renamed for name in (task.name, task.renamed_from)}
    there = set(Job.objects.using(engine.using).filter(name__in=names).values_list("name", flat=True))
    return [task for task in renamed if task.renamed_from in there and task.name not in there]


def _rename(engine: Engine, task: Task) -> int:
    jobs, old = Job.objects.using(engine.using), task.renamed_from
    count = rewrite(jobs.filter(name=old), lambda job: {"name": task.name, **_moved(job, task)}, actor=CODE)
    _rename_one_offs(jobs, task)
    rewrite(jobs.filter(task=old).order_by("pk"), lambda job: _moved(job, task), actor=CODE)
    rewrite(
        jobs.filter(schedule_kind__in=dependent_kinds()).order_by("pk"), lambda job: _waiting(job, task), actor=CODE
    )
    return count


def _rename_one_offs(jobs: QuerySet[Job], task: Task) -> None:
    """Have the job of what `run_once` promised follow: a key of the task would wait twice, under either name."""
    name = f"{ONE_OFF_PREFIX}{task.name}"
    if len(name) <= NAME_LENGTH and not jobs.filter(name=name).exists():
        old = jobs.filter(name=f"{ONE_OFF_PREFIX}{task.renamed_from}", source=ONE_OFFS)
        rewrite(old, lambda job: {"name": name}, actor=CODE)


def _moved(job: Job, task: Task) -> dict[str, Any]:
    """Return the columns of a job that follows its task; an orphan goes on where it stood."""
    if job.task != task.renamed_from:
        return {}
    return {"task": task.name, **({"orphaned_at": None, "problem": ""} if job.orphaned_at else {})}


def _waiting(job: Job, task: Task) -> dict[str, Any]:
    if task.renamed_from not in job.schedule.parents:
        return {}
    return {"schedule": job.schedule.with_parent_renamed(task.renamed_from, task.name)}
