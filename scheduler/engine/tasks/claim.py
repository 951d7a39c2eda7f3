"""Claim: take tasks that wait, the highest priority first. Their jobs are read, and neither locked nor written."""

from collections.abc import Iterable
from datetime import datetime
from functools import lru_cache

from scheduler.engine.base import Claimed, Engine
from scheduler.engine.claim import Claims
from scheduler.engine.db.bulk import LostRace, update_rows
from scheduler.engine.db.fast_read import SO_MANY, SOME_INSTANT, CompiledQuery, part_of, read_rows
from scheduler.engine.db.one_by_one import each_alone, together
from scheduler.engine.db.transactions import write_transaction
from scheduler.engine.limits import Limits, read_limits
from scheduler.engine.plan_basis import is_paused
from scheduler.engine.tasks.jobs import with_jobs
from scheduler.engine.tasks.queues import most_by_group
from scheduler.engine.unable import put_run_aside, runs_aside
from scheduler.exceptions import InvalidSchedule
from scheduler.models import Job, RunLog, Status
from scheduler.models.carriers import CARRIERS
from scheduler.models.primary import locked
from scheduler.models.stored import Unreadable

NEEDED = ("task", "group", "enabled", "paused_at", "paused_until")
COLUMNS = ("token", "status", "due_at", "started_at", "instance_id", "worker")
NAMES = [field.attname for field in RunLog._meta.concrete_fields]
MOST_LOOKS = 10
"""Looks of one pass behind tasks that have to wait. Each but the first leaves out all that wait for the same."""


def claim_tasks(engine: Engine, now: datetime, *, limit: int, run_id: int | None = None) -> Claims:
    """Take at most `limit` tasks that are due; only `run_id` when given. A lost race is counted and leaves them due."""
    claims = together(lambda: _claim(engine, now, limit, run_id))
    return _claim_one_by_one(engine, now, limit) if claims is None else claims


def next_task_after(engine: Engine, at: datetime) -> datetime | None:
    """Return when the first task is due after an instant."""
    later = RunLog.objects.using(engine.using).waiting().filter(priority__isnull=False, due_at__gt=at)
    return later.order_by("due_at").values_list("due_at", flat=True).first()


def _claim(engine: Engine, now: datetime, limit: int, run_id: int | None = None) -> Claims:
    try:
        with write_transaction(engine.using):
            runs = _takeable(engine, now, limit, read_limits(engine, most=most_by_group()), run_id)
            for run in runs:
                _begin(engine, run, now)
            rows = ((*(getattr(run, name) for name in COLUMNS), run.pk, Status.PENDING) for run in runs)
            update_rows(engine.using, RunLog, COLUMNS, ("id", "status"), rows)
    except LostRace:
        engine.lost_races += 1
        return Claims()
    engine.unable.started(run.pk for run in runs)
    return Claims(looked_at=len(runs), runs=[Claimed(run, engine.registry.get(run.job.task)) for run in runs])


def _claim_one_by_one(engine: Engine, now: datetime, limit: int) -> Claims:
    """Claim the others, and put aside the task that cannot be written: it keeps waiting."""
    claims = Claims()
    ready = RunLog.objects.using(engine.using).ready_tasks(now).exclude(pk__in=runs_aside(engine, now))
    runs = {run.pk: run for run in ready.select_related("job").only("pk", "job__name", "job__task")[:limit]}

    def claim(run: RunLog) -> int:
        nonlocal claims
        claims += _claim(engine, now, 1, run.pk)
        return claims.looked_at

    refused = each_alone(runs, claim, known=engine.unable.runs)
    for run, why in refused:
        put_run_aside(engine, run.pk, run.job, why, now)
    claims.looked_at += len(refused)
    return claims


def _takeable(engine: Engine, now: datetime, limit: int, limits: Limits, run_id: int | None) -> list[RunLog]:
    """Lock the tasks that may start; where some have to wait, those of other jobs behind them."""
    aside = set(runs_aside(engine, now)) if run_id is None else set()
    taken: dict[int, RunLog] = {}
    waiting: set[int] = set()
    for _ in range(MOST_LOOKS):
        due = _due(engine.using, now, limit - len(taken), run_id, but=aside | taken.keys(), waiting=waiting)
        found, before = with_jobs(engine, due), len(waiting)
        waiting |= _waiting(engine, {run.job_id: run.job for run in found}.values(), now, limits)
        for run in found:
            if run.job_id not in waiting and _may_start(engine, run, now, limits):
                taken[run.pk] = run
            else:
                waiting.add(run.job_id)
        if len(waiting) == before or len(taken) >= limit:
            break
        waiting |= _all_that_wait(engine, now, limits)
    return list(taken.values())


def _due(
    using: str, now: datetime, limit: int, run_id: int | None, *, but: set[int], waiting: set[int]
) -> list[RunLog]:
    """Lock the first tasks that are due: but for some, and for those of jobs whose tasks are waiting."""
    if run_id is None and not (but or waiting):
        return [part_of(RunLog, using, NAMES, values) for values in _first_due(using).rows(now, limit)]
    ready = RunLog.objects.using(using).ready_tasks(now).exclude(job__in=waiting).exclude(pk__in=but)
    if run_id is not None:
        ready = ready.filter(pk=run_id)
    return read_rows(locked(ready, skip_locked=True)[:limit])


@lru_cache(maxsize=16)
def _first_due(using: str) -> CompiledQuery:
    """Almost every pass asks this alone, and Django takes longer to compile it than a database to answer."""
    ready = locked(RunLog.objects.using(using).ready_tasks(SOME_INSTANT), skip_locked=True)
    return CompiledQuery(ready[:SO_MANY], SOME_INSTANT, SO_MANY)


def _all_that_wait(engine: Engine, now: datetime, limits: Limits) -> set[int]:
    """Return the ids of all jobs whose tasks have to wait: there may be many, and a few behind them that need not."""
    return _waiting(engine, Job.objects.using(engine.using).filter(CARRIERS).only(*NEEDED), now, limits)


def _waiting(engine: Engine, jobs: Iterable[Job], now: datetime, limits: Limits) -> set[int]:
    return {job.pk for job in jobs if _has_to_wait(engine, job, now, limits)}


def _may_start(engine: Engine, run: RunLog, now: datetime, limits: Limits) -> bool:
    """Whether this process can read how a task is to be called, and its queue has a place."""
    job = run.job
    if isinstance(job.policy, Unreadable):
        put_run_aside(engine, run.pk, job, InvalidSchedule(job.policy.error, field="policy"), now)
        return False
    return limits.admits(job)


def _has_to_wait(engine: Engine, job: Job, now: datetime, limits: Limits) -> bool:
    """Whether something stops the tasks of a job, this process cannot call them, or their queue is full."""
    if engine.registry.find(job.task) is None or not engine.takes.include(job.group):
        return True
    return not job.enabled or is_paused(job, at=now) or limits.pauses(job) or job.in_group in limits.full()


def _begin(engine: Engine, run: RunLog, now: datetime) -> None:
    run.token += 1
    run.status = Status.RUNNING
    run.due_at = run.started_at = max(now, run.due_at)
    run.instance_id, run.worker = engine.instance_id, engine.name
