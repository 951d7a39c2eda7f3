"""Sync: make the jobs in the database follow the tasks in the code. Safe when several processes boot at once."""

import logging
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import transaction

from scheduler.conf import conf
from scheduler.definition import COLUMNS
from scheduler.engine.base import Engine
from scheduler.engine.db.transactions import is_of_row, rewrite, write_transaction
from scheduler.engine.dependencies import replan_dependents
from scheduler.engine.events import CODE, changes, creations, event, write_events
from scheduler.engine.mend.sweep import replan_for_zone, take_up_unread
from scheduler.engine.sync.circles import set_circles_aside
from scheduler.engine.sync.overrides import merged, tell_of_hidden
from scheduler.engine.sync.rename import keeping_old_names, rename_jobs
from scheduler.engine.sync.served import served_elsewhere
from scheduler.models import Environment, EventKind, Instance, Job
from scheduler.models.carriers import CARRIERS
from scheduler.models.job_columns import NO_PLAN, REFUSED, WHERE_IT_GOES_ON, to_replan
from scheduler.models.primary import locked
from scheduler.registry import Task

logger = logging.getLogger("scheduler")

CODE_COLUMNS = ("task", *COLUMNS, "source")
"""What the code decides about a job, except where a person overrode it."""
ORPHANED_AT_ONCE = 500
"""Jobs that one transaction sets aside: claims wait for it."""


@dataclass(frozen=True, slots=True)
class Synced:
    """How many jobs one pass created, changed, orphaned and took back."""

    created: int = 0
    changed: int = 0
    orphaned: int = 0
    returned: int = 0


def sync(engine: Engine, now: datetime) -> Synced:
    """Create missing jobs, change those whose code changed, set aside those without code, take back returning ones."""
    rename_jobs(engine, now)
    kept = keeping_old_names(engine, now)
    jobs = Job.objects.using(engine.using)
    present = {job.name: job for job in jobs.filter(name__in=engine.registry.names())}
    missing = [task for task in engine.registry if task.name not in present and task.name not in kept]
    created = _create(engine, missing, now)
    engine.was_refused |= any(job.problem.startswith(REFUSED) for job in present.values())
    changed = _follow_all(engine, present)
    returned = take_back(engine, engine.registry.names())
    orphaned = _set_aside(engine, now)
    set_circles_aside(engine)
    take_up_unread(engine, present.values())
    replan_for_zone(engine)
    return Synced(created, changed, orphaned, returned)


def _follow_all(engine: Engine, present: Mapping[str, Job]) -> int:
    """Bring the jobs of registered tasks up to date, and tell of what people's changes hide; returns how many."""
    followed = [(present[task.name], task) for task in engine.registry if task.name in present]
    changed = sum(_follow(engine, job, task) for job, task in followed)
    for job, task in followed:
        if job.source and job.overridden_fields:
            tell_of_hidden(job, task.job_columns())
    return changed


def make_first_jobs(engine: Engine, now: datetime) -> int:
    """Create the jobs of registered tasks that have none, for `migrate`; returns how many.

    The first tick plans them: no slot is due before the scheduler has started once. Where instances live, a release is
    being rolled out, and the next of them creates what is new: those that are there would take it for an orphan.
    """
    if Instance.objects.using(engine.using).alive(engine.dead_before(now)).exists() or _is_of_another(engine):
        return 0
    rename_jobs(engine, now)
    there = _names_among(engine, engine.registry.names())
    return _create(engine, [task for task in engine.registry if task.name not in there], now)


def _is_of_another(engine: Engine) -> bool:
    marks = list(Environment.objects.using(engine.using).values_list("name", flat=True))
    return bool(marks) and conf.ENVIRONMENT not in marks


def ensure_job(engine: Engine, name: str, now: datetime) -> None:
    """Create the job of a registered task if no start of the scheduler has done so yet.

    None is created beside one that has its old name.
    """
    task = engine.registry.find(name)
    if task is None or Job.objects.using(engine.using).filter(name=name).exists():
        return
    rename_jobs(engine, now)
    jobs = Job.objects.using(engine.using).filter(name=name)
    if not jobs.exists() and name not in keeping_old_names(engine, now):
        _create(engine, [task], now)


def _create(engine: Engine, tasks: list[Task], now: datetime) -> int:
    """Insert the jobs at once, or else the missing ones one by one: a bad one does not keep the others out.

    No conflict is left to the database to ignore: SQLite and MySQL then ignore, or bend, what is wrong as well.
    """
    if not tasks:
        return 0
    jobs = [Job(name=task.name, created_at=now, **task.job_columns()) for task in tasks]
    names = {job.name for job in jobs}
    try:
        with transaction.atomic(using=engine.using):
            Job.objects.using(engine.using).bulk_create(jobs)
            write_events(engine.using, creations(_with_ids(engine, jobs), CODE))
            replan_dependents(engine.using, names)
        return len(jobs)
    except Exception as error:
        if not is_of_row(error):
            raise
        there = _names_among(engine, names)
        return sum(_insert(engine, job) for job in jobs if job.name not in there)


def _with_ids(engine: Engine, jobs: list[Job]) -> list[Job]:
    """Return the jobs, which MySQL has inserted without telling their ids."""
    if any(job.pk is None for job in jobs):
        ids = dict(
            Job.objects.using(engine.using).filter(name__in=[job.name for job in jobs]).values_list("name", "pk")
        )
        for job in jobs:
            job.pk = ids[job.name]
    return jobs


def _names_among(engine: Engine, names: Collection[str]) -> set[str]:
    return set(Job.objects.using(engine.using).filter(name__in=names).values_list("name", flat=True))


def _insert(engine: Engine, job: Job) -> bool:
    """Insert one job. Of one that the database refuses, its name is kept, with the reason as its problem."""
    try:
        with transaction.atomic(using=engine.using):
            job.save(using=engine.using, force_insert=True)
            write_events(engine.using, creations([job], CODE))
            replan_dependents(engine.using, {job.name})
    except Exception as error:
        if job.name in _names_among(engine, [job.name]):  # another process has just made it
            return False
        columns = _refused(job.name, error)
        engine.was_refused = True
        kept = Job(name=job.name, task=job.task, source=job.source, created_at=job.created_at, **columns)
        Job.objects.using(engine.using).bulk_create([kept], ignore_conflicts=True)
        stored = Job.objects.using(engine.using).filter(name=job.name, problem=kept.problem)
        write_events(engine.using, creations(stored, CODE))
        replan_dependents(engine.using, {job.name})
        return False
    return True


def follow_refused(engine: Engine) -> int:
    """Try again what the database did not take of the code, once a lease; returns how many jobs were changed."""
    if not engine.was_refused:
        return 0
    refused = Job.objects.using(engine.using).filter(problem__startswith=REFUSED)
    found = [(job, engine.registry.find(job.name)) for job in refused]
    engine.was_refused = bool(found)
    return sum(_follow(engine, job, task) for job, task in found if task is not None)


def follow_renamed(engine: Engine, now: datetime) -> int:
    """Rename the jobs that a process of the release before still ran at the start, once a lease; returns how many."""
    renamed = rename_jobs(engine, now)
    if renamed:
        names = [task.name for task in engine.registry if task.renamed_from]
        for job in Job.objects.using(engine.using).filter(name__in=names):
            _follow(engine, job, engine.registry.get(job.name))
    return renamed


def _refused(name: str, error: Exception, *, known: str = "") -> dict[str, Any]:
    """Return the columns of a job whose definition cannot be stored: it does not start, and says why.

    Raises the error again when it is none of the definition's.
    """
    if not is_of_row(error):
        raise error
    problem = f"{REFUSED}{error}"
    if problem == known:
        return {}
    logger.error("Job %r: %s", name, problem, extra={"action": "job_refused", "job": name})
    return {"problem": problem, **NO_PLAN}


def _follow(engine: Engine, job: Job, task: Task) -> int:
    """Bring the columns that no person overrode up to date; one write, so that a job never has half a definition."""
    if not _changes_by_code(job, task):
        return 0
    row = Job.objects.using(engine.using).filter(pk=job.pk)
    try:
        return rewrite(row, lambda stored: _changes_by_code(stored, task), actor=CODE)
    except Exception as error:
        refused = _refused(job.name, error, known=job.problem)
        engine.was_refused = True
        if not refused:
            return 0
        with write_transaction(engine.using):
            write_events(engine.using, changes(job, refused, actor=CODE))
            return row.update(**refused)


def _changes_by_code(job: Job, task: Task) -> dict[str, Any]:
    """Return the columns in which a job that the code made, as people left it, is behind its code."""
    if not job.source:
        return {}
    changes = differences_from_code(job, task, keep=job.overridden_fields)
    if job.problem.startswith(REFUSED):
        changes |= {"problem": "", **to_replan()}
    return changes


def differences_from_code(job: Job, task: Task, *, keep: Collection[str] = ()) -> dict[str, Any]:
    """Return the columns of a job that its code wants otherwise, as the code wants them, but for those to keep."""
    wanted = task.job_columns()
    wanted["policy"] = merged(job, task.policy, keep)
    return {name: wanted[name] for name in CODE_COLUMNS if name not in keep and getattr(job, name) != wanted[name]}


def take_back(engine: Engine, tasks: Collection[str]) -> int:
    """Let the orphans whose tasks are there again go on where they stood; returns how many.

    No instance could run their slots, so the misfire policy decides on them, as after any other downtime. Orphans that
    were given another schedule or were enabled in that time are planned from now on.
    """
    orphans = Job.objects.using(engine.using).filter(orphaned_at__isnull=False, task__in=tasks)
    if not orphans.exists():
        return 0
    with write_transaction(engine.using):
        back = [event(job, EventKind.RETURNED, None, actor=CODE) for job in locked(orphans.order_by("pk").only("name"))]
        write_events(engine.using, back)
        return orphans.update(orphaned_at=None, problem="", **to_replan(WHERE_IT_GOES_ON))


def _set_aside(engine: Engine, now: datetime) -> int:
    """Orphan the jobs whose task neither this process nor any other live instance registers."""
    jobs = Job.objects.using(engine.using).filter(~CARRIERS, orphaned_at__isnull=True)
    strangers = list(jobs.exclude(task__in=engine.registry.names()).only("pk", "task", "source"))
    served = served_elsewhere(engine, now) if strangers else set()
    orphans = [job for job in strangers if job.task not in served]
    count, plan = 0, to_replan(WHERE_IT_GOES_ON, wake_at=None)
    if orphans:

        def as_orphan(job: Job) -> dict[str, Any]:
            problem = engine.registry.why_missing(job.task, job.source)
            return {"orphaned_at": now, "problem": problem, **plan}

        for start in range(0, len(orphans), ORPHANED_AT_ONCE):
            rows = jobs.filter(pk__in=[job.pk for job in orphans[start : start + ORPHANED_AT_ONCE]]).order_by("pk")
            count += rewrite(rows, as_orphan, actor=CODE, at=now)
        take_back(engine, served_elsewhere(engine, now))  # an instance that has just joined looked too early
    return count
