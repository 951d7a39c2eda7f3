"""Presence: which scheduler processes live on this database."""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from uuid import UUID

from django.db.models import Exists, OuterRef, QuerySet, Subquery

from scheduler.engine.base import Engine
from scheduler.engine.read import SOME_INSTANT, CompiledQuery
from scheduler.engine.write import own_turn, write_transaction
from scheduler.models import Group, Instance, Job, RunLog


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """What identifies the operating-system process of an instance: pids are used again, so boot and start count."""

    host: str
    boot_id: str
    pid: int
    process_started: str


@dataclass(frozen=True, slots=True)
class Look:
    """What one indexed query sees: the earliest start of a job or promised attempt, end of a pause, and any death."""

    next_job_at: datetime | None
    next_attempt_at: datetime | None
    next_pause_end_at: datetime | None
    someone_died: bool


def join(engine: Engine, process: Process, now: datetime, *, started_by: str) -> None:
    """Enter this instance. Once more is no error, since a first try may have failed half-way: it started then."""
    columns = {
        "host": process.host,
        "boot_id": process.boot_id,
        "pid": process.pid,
        "process_started": process.process_started,
        "started_by": started_by,
        "heartbeat_at": now,
        "tasks": sorted({task.name for task in engine.registry}),
    }
    with write_transaction(engine.using):  # it reads before it writes
        Instance.objects.using(engine.using).update_or_create(
            id=engine.instance_id, defaults=columns, create_defaults=columns | {"started_at": now}
        )


def renew(engine: Engine, now: datetime, *, ticked_at: datetime | None) -> bool:
    """Renew the heartbeat; False when this instance was declared dead meanwhile."""
    mine = Instance.objects.using(engine.using).filter(pk=engine.instance_id)
    with own_turn(engine.using, before_others=True):
        return bool(mine.update(heartbeat_at=now, ticked_at=ticked_at))


def leave(engine: Engine) -> None:
    """Remove this instance."""
    Instance.objects.using(engine.using).filter(pk=engine.instance_id).delete()


def look(engine: Engine, now: datetime) -> Look | None:
    """Return what there is to do, from one query; None when this instance was declared dead meanwhile."""
    query = _look_query(engine.using, engine.instance_id, frozenset(engine.foreign_tasks))
    for seen in query.rows(engine.dead_before(now)):
        return Look(*seen)
    return None


def starts_after(engine: Engine, at: datetime) -> list[datetime | None]:
    """Return the first start of a job and of a promised attempt after `at`, where there is one."""
    jobs = _planned_jobs(engine.using, engine.foreign_tasks).filter(next_start_at__gt=at)
    attempts = RunLog.objects.using(engine.using).waiting().filter(due_at__gt=at)
    first_job = jobs.order_by("next_start_at").values_list("next_start_at", flat=True)[:1]
    return [*first_job, *attempts.order_by("due_at").values_list("due_at", flat=True)[:1]]


def _planned_jobs(using: str, foreign_tasks: Collection[str]) -> QuerySet[Job]:
    return Job.objects.using(using).filter(next_start_at__isnull=False).exclude(task__in=foreign_tasks)


@lru_cache(maxsize=16)
def _look_query(using: str, instance_id: UUID, foreign_tasks: frozenset[str]) -> CompiledQuery:
    """It is asked many times a minute, and Django takes ten times as long to compile it as a database to answer."""
    jobs = _planned_jobs(using, foreign_tasks)
    attempts = RunLog.objects.using(using).waiting()
    pauses = Group.objects.using(using).paused().filter(paused_until__isnull=False)
    dead = Instance.objects.using(using).dead(SOME_INSTANT).exclude(pk=OuterRef("pk"))
    return CompiledQuery(
        Instance.objects.using(using)
        .filter(pk=instance_id)
        .annotate(
            next_job_at=Subquery(jobs.order_by("next_start_at").values("next_start_at")[:1]),
            next_attempt_at=Subquery(attempts.order_by("due_at").values("due_at")[:1]),
            next_pause_end_at=Subquery(pauses.order_by("paused_until").values("paused_until")[:1]),
            someone_died=Exists(dead),
        )
        .values_list("next_job_at", "next_attempt_at", "next_pause_end_at", "someone_died")
    )


def dead_instances(engine: Engine, now: datetime, is_gone: Callable[[Process], bool]) -> list[Instance]:
    """Return the instances that are silent for too long, or whose process on this host is gone."""
    others = Instance.objects.using(engine.using).exclude(pk=engine.instance_id)
    deadline = engine.dead_before(now)
    return [one for one in others if one.heartbeat_at < deadline or is_gone(process_of(one))]


def process_of(instance: Instance) -> Process:
    """Return the process of an instance."""
    return Process(
        host=instance.host,
        boot_id=instance.boot_id,
        pid=instance.pid,
        process_started=instance.process_started,
    )
