"""What tests of the engine are made of: a fixed instant, engines with their tasks, jobs, and steps at an instant."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from scheduler.engine.base import Claimed, Engine
from scheduler.engine.claim import Claims, claim_due
from scheduler.engine.claim_promised import claim_waiting
from scheduler.engine.finish import Finished, Outcome, Settled, finish_runs
from scheduler.engine.instances import Process, join
from scheduler.engine.replan import replan
from scheduler.engine.tick import Tick, tick
from scheduler.models import Job, RunLog, Status
from scheduler.models.job_columns import PLAN
from scheduler.policy.codec import from_options
from scheduler.registry import Registry, register
from scheduler.schedules import Every, Schedule

T0 = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)
"""A Monday noon."""

MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)
DAY = timedelta(days=1)


def at(seconds: float = 0, **units: float) -> datetime:
    """Return an instant so much later than T0."""
    return T0 + timedelta(seconds=seconds, **units)


def make_registry(*names: str, function: Callable[..., Any] = lambda **kwargs: None, **options: Any) -> Registry:
    """Return a registry of its own with tasks of these names."""
    tasks = Registry()
    for name in names:
        register(name, into=tasks, **options)(function)
    return tasks


def make_engine(*names: str, tasks: Registry | None = None, now: datetime = T0) -> Engine:
    """Return an engine that has joined; without `tasks` it knows tasks of the given names (default: “task”)."""
    engine = Engine(registry=tasks if tasks is not None else make_registry(*(names or ("task",))))
    join(engine, Process(host="h", boot_id="b", pid=1, process_started="1"), now, started_by="test")
    return engine


def make_job(
    name: str = "job",
    schedule: Schedule | None = None,
    *,
    task: str = "task",
    planned_at: datetime | None = T0,
    columns: dict[str, Any] | None = None,
    **options: Any,
) -> Job:
    """Create a job (by default every minute) with policy `options`, planned at `planned_at` unless that is None."""
    job = Job.objects.create(
        name=name, task=task, schedule=schedule or Every(minutes=1), policy=from_options(options), created_at=T0
    )
    if planned_at is not None:
        plan(job, planned_at)
    if columns:
        Job.objects.filter(pk=job.pk).update(**columns)
    job.refresh_from_db()
    return job


def plan(job: Job, now: datetime) -> None:
    """Plan a job, as the first tick after its creation does."""
    replan(job, now)
    columns = {name: getattr(job, name) for name in ("anchor_at", *PLAN, "plan_basis")}
    Job.objects.filter(pk=job.pk).update(**columns)


def tick_at(engine: Engine, now: datetime, *, capacity: int = 100, ahead: float = 0) -> Tick:
    """Do one pass of the engine."""
    return tick(engine, now, ahead=timedelta(seconds=ahead), capacity=capacity)


def claim_at(engine: Engine, now: datetime, *, limit: int = 100, ahead: float = 0) -> Claims:
    """Claim what is due, promised attempts first where there are any: as a pass does."""
    claims = Claims()
    if RunLog.objects.filter(status=Status.PENDING).exists():
        claims += claim_waiting(engine, now, ahead=timedelta(seconds=ahead), limit=limit)
    claims += claim_due(engine, now, ahead=timedelta(seconds=ahead), limit=limit)
    return claims


def claim_one(engine: Engine, now: datetime) -> Claimed:
    """Claim the one run that is due."""
    (claimed,) = claim_at(engine, now).runs
    return claimed


def ended(
    claimed: Claimed, now: datetime, status: str = Status.SUCCEEDED, *, after: float = 0, **outcome: Any
) -> Finished:
    """Return the end of a run at `now + after` seconds; its state is empty, unless it is given."""
    finished_at = now + timedelta(seconds=after)
    outcome.setdefault("state", {})
    return Finished(claimed.run, Outcome(status=status, started_at=now, finished_at=finished_at, **outcome))


def finish(engine: Engine, claimed: Claimed, now: datetime, status: str = Status.SUCCEEDED, **more: Any) -> Settled:
    """Write the end of one run."""
    in_doubt = more.pop("in_doubt", False)
    return finish_runs(engine, [ended(claimed, now, status, **more)], in_doubt=in_doubt)


def run_at(engine: Engine, now: datetime, status: str = Status.SUCCEEDED, **more: Any) -> RunLog:
    """Claim the one run that is due and end it at once."""
    claimed = claim_one(engine, now)
    finish(engine, claimed, now, status, **more)
    return RunLog.objects.get(pk=claimed.run.pk)


def ledger(job: Job | None = None) -> list[tuple[datetime, int, str]]:
    """Return slot, attempt and status of every row, oldest slot first."""
    rows = RunLog.objects.all() if job is None else job.runs.all()
    return list(rows.order_by("scheduled_for", "attempt").values_list("scheduled_for", "attempt", "status"))
