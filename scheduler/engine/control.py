"""Control: everything a person, the admin, a command or the API may do to jobs. The only way in for all surfaces."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.db import IntegrityError, transaction

from scheduler.clock import SYSTEM_CLOCK
from scheduler.conf import conf
from scheduler.engine.base import Engine
from scheduler.engine.decide import end_pause
from scheduler.engine.plan import schedule_of
from scheduler.engine.sync import CODE_COLUMNS, definition
from scheduler.engine.write import locked, write_transaction
from scheduler.exceptions import InvalidOption, InvalidSchedule, Refused, UnknownJob
from scheduler.models import UNPLANNED, Job, RunLog, Status, Trigger
from scheduler.models.fields import Unreadable
from scheduler.models.job import announce
from scheduler.policy.codec import from_options
from scheduler.policy.overlap import is_free
from scheduler.registry import Task, did_you_mean, registry
from scheduler.schedules import Schedule, parse
from scheduler.signals import job_paused, job_recovered, job_resumed

ScheduleLike = Schedule | str | Mapping[str, Any]
"""A schedule, its text form, or its JSON form."""


def get_job(name: str) -> Job:
    """Return the job of this name; raises UnknownJob with near names."""
    try:
        return Job.objects.get_by_natural_key(name)
    except Job.DoesNotExist:
        names = {*Job.objects.values_list("name", flat=True), *registry.names()}
        raise UnknownJob(f"There is no job {name!r}.{did_you_mean(name, names)}") from None


def list_jobs() -> list[Job]:
    """Return all jobs, sorted by name."""
    return list(Job.objects.all())


def add_job(
    name: str,
    task: str,
    schedule: ScheduleLike,
    *,
    kwargs: Mapping[str, Any] | None = None,
    enabled: bool = True,
    description: str = "",
    **options: Any,
) -> Job:
    """Create a job for a registered task; raises InvalidSchedule, InvalidOption, UnknownTask or, if the name is taken,
    Refused with code `exists`."""
    registered = registry.get(task)
    if enabled:
        _ask_gate(registered)
    job = Job(
        name=name,
        task=registered.name,
        schedule=checked_schedule(schedule),
        policy=from_options(options),
        kwargs=dict(kwargs or {}),
        enabled=enabled,
        description=description,
        created_at=_now(),
    )
    try:
        with transaction.atomic(using=Engine().using):
            job.save(force_insert=True)
    except IntegrityError:
        raise Refused(f"A job {name!r} exists already; change it with update_job.", code="exists") from None
    return job


def update_job(name: str, **changes: Any) -> Job:
    """Change the definition of a job: schedule, kwargs, enabled, description, task, or any policy option.

    What the code defines and a person changes is remembered as overridden, and kept across deploys. An explicit change
    of the schedule also resets a broken job.
    """
    return write_definition(name, _columns_from(get_job(name), changes))


def write_definition(name: str, columns: dict[str, Any]) -> Job:
    """Write checked columns of a job's definition; see `update_job`."""
    job = get_job(name)
    if columns.get("enabled") and not job.enabled:
        _ask_gate(registry.find(columns.get("task", job.task)))
    if job.source:
        columns["overridden_fields"] = sorted({*job.overridden_fields, *(columns.keys() & set(CODE_COLUMNS))})
    if "schedule" in columns:
        columns |= {"broken_at": None, "consecutive_failures": 0}
    Job.objects.filter(pk=job.pk).update(**columns)
    return get_job(name)


def follow_code(name: str) -> Job:
    """Drop every change people made to a job that the code defines."""
    job = get_job(name)
    wanted = definition(registry.get(job.task))
    Job.objects.filter(pk=job.pk).update(overridden_fields=[], **wanted)
    return get_job(name)


def remove_job(name: str) -> None:
    """Delete a job with its runs; refused for a job the code defines, which would come back at the next start."""
    job = get_job(name)
    if job.source and job.task in registry:
        raise Refused(f"{name!r} is defined in {job.source}; disable it, or remove its @register.", code="code_owned")
    job.delete()


def pause_job(name: str, *, until: datetime | None = None, reason: str = "", actor: str = "") -> Job:
    """Stop a job from starting, at once, until `until` (aware) or until it is resumed. Idempotent."""
    if until is not None and until.tzinfo is None:
        raise InvalidOption("until has no time zone; pass an aware datetime.")
    job = get_job(name)
    Job.objects.filter(pk=job.pk).update(
        paused_at=job.paused_at or _now(),
        paused_until=until,
        pause_reason=reason[:500],
        paused_by=actor[:150],
        next_run_at=None,
        next_start_at=until,
    )
    job = get_job(name)
    job_paused.send_robust(Job, job=job)
    return job


def resume_job(name: str, *, actor: str = "") -> Job:
    """End a pause and plan the job from now; slots that passed meanwhile are not made up for. Idempotent."""
    job = get_job(name)
    if job.paused_at is None:
        return job
    _ask_gate(registry.find(job.task))
    end_pause(job)
    job.next_start_at = UNPLANNED
    job.save(update_fields=["paused_at", "paused_until", "paused_by", "pause_reason", "next_start_at"])
    job_resumed.send_robust(Job, job=job, actor=actor)
    return job


def reset_job(name: str) -> Job:
    """Let a broken job run again: failures to 0, planned from now."""
    job = get_job(name)
    was_broken = job.broken_at is not None
    Job.objects.filter(pk=job.pk).update(broken_at=None, consecutive_failures=0, problem="", next_start_at=UNPLANNED)
    job = get_job(name)
    if was_broken:
        job_recovered.send_robust(Job, job=job, run=None)
    return job


def run_now(name: str, *, kwargs: Mapping[str, Any] | None = None, actor: str = "") -> RunLog:
    """Promise a run of the job at once, beside its cadence; returns its row, still pending.

    Raises Refused with code `busy`, `gate_closed`, `not_registered`, `orphaned` or `invalid`.
    """
    engine = Engine()
    job = get_job(name)
    _ask_gate(_runnable_task(job))
    with write_transaction(engine.using):
        job = locked(Job.objects.using(engine.using).filter(pk=job.pk)).get()
        _refuse_when_busy(job)
        run = _promise(engine, job, kwargs, actor)
    announce(engine.using)
    return run


def checked_schedule(schedule: ScheduleLike) -> Schedule:
    """Return the schedule, refused when its interval is shorter than SCHEDULER_MIN_INTERVAL."""
    parsed = parse(schedule)
    period = parsed.period
    if period is not None and period.total_seconds() < conf.MIN_INTERVAL:
        raise InvalidSchedule(
            f"The interval is {period.total_seconds():g} s; the shortest allowed is {conf.MIN_INTERVAL:g} s"
            " (SCHEDULER_MIN_INTERVAL).",
            field="seconds",
        )
    return parsed


def _now() -> datetime:
    return SYSTEM_CLOCK.now()


def _columns_from(job: Job, changes: dict[str, Any]) -> dict[str, Any]:
    columns: dict[str, Any] = {
        name: changes.pop(name) for name in ("task", "kwargs", "enabled", "description") if name in changes
    }
    if "task" in columns:
        registry.get(columns["task"])
    if "schedule" in changes:
        columns["schedule"] = checked_schedule(changes.pop("schedule"))
    if changes:
        present = {} if isinstance(job.policy, Unreadable) else job.policy
        columns["policy"] = from_options(_options_of(present) | changes)
    return columns


def _options_of(policy: Any) -> dict[str, Any]:
    from scheduler.policy.base import differences

    return {} if isinstance(policy, dict) else differences(policy)


def _runnable_task(job: Job) -> Task:
    if job.orphaned_at:
        raise Refused(f"{job.name!r} is orphaned: {job.problem}", code="orphaned")
    task = registry.find(job.task)
    if task is None:
        raise Refused(
            f"The task {job.task!r} of {job.name!r} is not registered in this process.", code="not_registered"
        )
    if isinstance(job.policy, Unreadable):
        raise Refused(f"{job.name!r} cannot run: {job.policy.error}", code="invalid")
    return task


def _ask_gate(task: Task | None) -> None:
    if task is None or task.gate is None:
        return
    answer = task.gate()
    if answer is not True:
        reason = answer if isinstance(answer, str) else "its gate says no"
        raise Refused(f"{task.name!r} may not run: {reason}", code="gate_closed")


def _refuse_when_busy(job: Job) -> None:
    if is_free(job.policy.overlap, job.active_runs, job.policy.max_concurrent) and not job.runs.waiting().exists():
        return
    run = job.runs.filter(due_at__isnull=False).order_by("due_at").first()
    since = f" since {run.started_at:%H:%M:%S} UTC" if run and run.started_at else ""
    number = f", run {run.pk}" if run else ""
    raise Refused(f"{job.name!r} is busy{since}{number}.", code="busy")


def _promise(engine: Engine, job: Job, kwargs: Mapping[str, Any] | None, actor: str) -> RunLog:
    now = _now()
    return RunLog.objects.using(engine.using).create(
        job=job,
        scheduled_for=now,
        trigger=Trigger.MANUAL,
        status=Status.PENDING,
        due_at=now,
        kwargs=None if kwargs is None else dict(kwargs),
        actor=actor[:150],
    )


def preview(job: Job, count: int, after: datetime) -> list[datetime]:
    """Return the next slots of a job after an instant, as its schedule gives them."""
    return schedule_of(job).upcoming(count, after)
