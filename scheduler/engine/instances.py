"""Presence: which scheduler processes live on this database."""

from collections.abc import Callable, Collection
from dataclasses import dataclass, fields
from datetime import datetime
from functools import lru_cache
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db.models import Count, Exists, OuterRef, QuerySet, Subquery, Value

from scheduler.engine.base import Engine
from scheduler.engine.db.fast_read import SOME_INSTANT, CompiledQuery
from scheduler.engine.db.transactions import has_one_writer, write_once, write_transaction
from scheduler.engine.limits import attempts_taken, jobs_taken
from scheduler.models import Group, Instance, Job, RunLog, TakenGroups
from scheduler.models.instance import Workers


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """What identifies the operating-system process of an instance: pids are used again, so boot and start count."""

    host: str
    boot_id: str
    pid: int
    process_started: str


@dataclass(frozen=True, slots=True)
class Look:
    """What one indexed query sees: the earliest start of a job, promised attempt or task, end of a pause, any death,
    and how many instances look for due work."""

    next_job_at: datetime | None
    next_attempt_at: datetime | None
    next_task_at: datetime | None
    next_pause_end_at: datetime | None
    someone_died: bool
    instances: int


def join(engine: Engine, process: Process, now: datetime, *, started_by: str) -> None:
    """Enter this instance. Once more is no error, since a first try may have failed half-way: it started then."""
    columns = {
        "host": process.host,
        "boot_id": process.boot_id,
        "pid": process.pid,
        "process_started": process.process_started,
        "started_by": started_by,
        "time_zone": settings.TIME_ZONE[:64],
        "heartbeat_at": now,
        "tasks": sorted({task.name for task in engine.registry}),
        "unable": engine.unable.told(),
        "groups": engine.takes.to_tell(),
    }
    with write_transaction(engine.using):  # it reads before it writes
        Instance.objects.using(engine.using).update_or_create(
            id=engine.instance_id, defaults=columns, create_defaults=columns | {"started_at": now}
        )


def renew(
    engine: Engine, now: datetime, *, ticked_at: datetime | None, trouble: str = "", workers: Workers | None = None
) -> bool:
    """Renew the heartbeat; False when this instance has been declared dead."""
    mine = Instance.objects.using(engine.using).filter(pk=engine.instance_id)
    columns: dict[str, Any] = {"heartbeat_at": now, "ticked_at": ticked_at, "trouble": trouble}
    if workers is not None:
        columns["workers"] = workers.to_tell()
    return write_once(engine.using, lambda: mine.update(**columns), before_others=True)


def leave(engine: Engine) -> None:
    """Remove this instance."""
    mine = Instance.objects.using(engine.using).filter(pk=engine.instance_id)
    write_once(engine.using, lambda: mine.delete()[0])


def look(engine: Engine, now: datetime) -> Look | None:
    """Return what there is to do, from one query; None when this instance has been declared dead."""
    query = _look_query(engine.using, engine.instance_id, frozenset(engine.foreign_tasks), engine.takes)
    for seen in query.rows(engine.dead_before(now)):
        return Look(*seen)
    return None


def starts_after(engine: Engine, at: datetime) -> list[datetime | None]:
    """Return the first start of a job and of a promised attempt after `at`, where there is one."""
    jobs = _planned_jobs(engine.using, engine.foreign_tasks, engine.takes).filter(wake_at__gt=at)
    attempts = _promised_attempts(engine.using, engine.takes).filter(due_at__gt=at)
    first_job = jobs.order_by("wake_at").values_list("wake_at", flat=True)[:1]
    return [*first_job, *attempts.order_by("due_at").values_list("due_at", flat=True)[:1]]


def _planned_jobs(using: str, foreign_tasks: Collection[str], takes: TakenGroups) -> QuerySet[Job]:
    jobs = Job.objects.using(using).filter(wake_at__isnull=False).exclude(task__in=foreign_tasks)
    return jobs_taken(takes, jobs)


def _promised_attempts(using: str, takes: TakenGroups) -> QuerySet[RunLog]:
    return attempts_taken(takes, RunLog.objects.using(using).waiting())


@lru_cache(maxsize=16)
def _look_query(using: str, instance_id: UUID, foreign_tasks: frozenset[str], takes: TakenGroups) -> CompiledQuery:
    """It is asked many times a minute, and Django takes ten times as long to compile it as a database to answer."""
    jobs = _planned_jobs(using, foreign_tasks, takes)
    first = _promised_attempts(using, takes).order_by("due_at").values("due_at")
    pauses = Group.objects.using(using).paused().filter(paused_until__isnull=False)
    dead = Instance.objects.using(using).dead(SOME_INSTANT).exclude(pk=OuterRef("pk"))
    every = Instance.objects.using(using).dispatching().order_by().values(every=Value(1))
    counted = every.annotate(count=Count("pk")).values("count")
    return CompiledQuery(
        Instance.objects.using(using)
        .filter(pk=instance_id)
        .annotate(
            next_job_at=Subquery(jobs.order_by("wake_at").values("wake_at")[:1]),
            next_attempt_at=Subquery(first.filter(priority__isnull=True)[:1]),
            next_task_at=Subquery(first.filter(priority__isnull=False)[:1]),
            next_pause_end_at=Subquery(pauses.order_by("paused_until").values("paused_until")[:1]),
            someone_died=Exists(dead),
            instances=Subquery(counted),
        )
        .values_list(*(one.name for one in fields(Look)))
    )


Told = Callable[[Process], bool]
"""What the operating system tells of a process; False where nothing is certain."""


def never(process: Process) -> bool:
    """Be certain of no process."""
    return False


def dead_instances(engine: Engine, now: datetime, is_gone: Told, goes_on: Told = never) -> list[Instance]:
    """Return the instances that are silent for too long, or whose process on this host is gone.

    SQLite lets one process write at a time, in no order, so on a busy machine a heartbeat may wait for longer than any
    time to live. Such a database has one host, whose table of processes knows who goes on: those are dead only once
    they have hung for much longer. On a server, silence means that a process cannot reach it, whether it lives or not.
    """
    others = Instance.objects.using(engine.using).exclude(pk=engine.instance_id)
    silent, hung = engine.dead_before(now), engine.hung_before(now)
    may_wait = has_one_writer(engine.using)

    def is_dead(one: Instance) -> bool:
        process = process_of(one)
        if one.heartbeat_at >= silent:
            return is_gone(process)
        return one.heartbeat_at < hung or not (may_wait and goes_on(process))

    return [one for one in others if is_dead(one)]


def others_of(engine: Engine) -> list[Process] | None:
    """Return the processes of the other instances; None when this one was declared dead."""
    instances = {one.pk: one for one in Instance.objects.using(engine.using).defer("tasks")}
    if instances.pop(engine.instance_id, None) is None:
        return None
    return [process_of(one) for one in instances.values()]


def process_of(instance: Instance) -> Process:
    """Return the process of an instance."""
    return Process(
        host=instance.host,
        boot_id=instance.boot_id,
        pid=instance.pid,
        process_started=instance.process_started,
    )
