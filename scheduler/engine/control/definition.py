"""Definitions: add, change and remove jobs."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any

from django.db import DatabaseError

from scheduler.arguments import (
    DESCRIPTION_LENGTH,
    checked_flag,
    checked_group,
    checked_kwargs,
    checked_name,
    checked_priority,
    checked_text,
    is_name,
)
from scheduler.engine.base import Engine
from scheduler.engine.control.forusers import refuse_for_users, refuse_without_users
from scheduler.engine.dbtime import shared_now
from scheduler.engine.dependencies import replan_dependents
from scheduler.engine.sync import CODE_COLUMNS, differences_from_code
from scheduler.engine.write import is_refusal, rewrite, write_transaction
from scheduler.exceptions import InvalidOption, Refused, UnknownJob
from scheduler.models import Job
from scheduler.models.fields import Unreadable
from scheduler.models.job import PLANNING_COLUMNS
from scheduler.models.primary import locked
from scheduler.policy.base import differences
from scheduler.policy.codec import from_options
from scheduler.registry import Task, checked_interval, did_you_mean, registry
from scheduler.schedules import AfterJobs, Schedule, parse, refuse_cycle

ScheduleLike = Schedule | str | Mapping[str, Any]
"""A schedule, its text form, or its JSON form."""

Columns = dict[str, Any]
"""Columns of a job's row, each with its value."""


def get_job(name: str) -> Job:
    """Return the job of this name; raises UnknownJob with near names."""
    job = Job.objects.filter(name=name).first() if is_name(name) else None
    if job is None:
        if isinstance(name, str) and name in registry:
            raise UnknownJob(f"The task {name!r} is registered; its job appears when the scheduler has started once.")
        names = {*Job.objects.values_list("name", flat=True), *registry.names()}
        hint = f"{did_you_mean(name, names)}{registry.told_failures()}"
        raise UnknownJob(f"There is no job {name!r}.{hint}")
    return job


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
    group: str = "",
    priority: int = 0,
    **options: Any,
) -> Job:
    """Create a job for a registered task; raises InvalidSchedule, InvalidOption, UnknownTask or, if the name is taken,
    Refused with code `exists`."""
    given = {
        "task": task,
        "kwargs": {} if kwargs is None else kwargs,
        "enabled": enabled,
        "description": description,
        "group": group,
        "priority": priority,
    }
    columns = {
        "name": checked_name(name),
        "schedule": checked_schedule(schedule, of=name),
        "policy": from_options(options),
        **{column: CHECKS[column](value) for column, value in given.items()},
    }
    ask_to_enable(Job(enabled=False), columns)
    return insert_job(columns)


def update_job(name: str, **changes: Any) -> Job:
    """Change the definition of a job: schedule, kwargs, enabled, description, task, or any policy option.

    What the code defines and a person changes is remembered as overridden, and kept across deploys. An explicit change
    of the schedule also resets a broken job.
    """
    return _change(name, lambda job: _as_overrides(job, _columns_from(job, changes)))


def follow_code(name: str) -> Job:
    """Drop every change people made to a job that the code defines: the code registered under the job's own name.

    Raises UnknownTask when that is not registered here, and Refused with code `not_from_code` for a job that people
    made, or `gate_closed` when the job would be enabled; InvalidSchedule when the job would wait for itself.
    """
    return _change(name, _columns_of_code)


def insert_job(columns: Columns) -> Job:
    """Store a new job of checked columns, with no question to a gate; see `add_job`."""
    job = Job(**columns, created_at=shared_now(Engine().using))
    refuse_for_users(job, columns)
    try:
        with _storing(job.name), write_transaction(Engine().using):
            job.save(force_insert=True)
    except InvalidOption:
        if Job.objects.filter(name=job.name).exists():
            text = f"A job {job.name!r} exists already; change it with update_job."
            raise Refused(text, code="exists") from None
        raise
    replan_dependents(Engine().using, {job.name})
    return job


def write_definition(name: str, columns: Columns, asked: Task | None) -> Job:
    """Write checked columns of a job's definition; see `update_job`. `asked` is what `ask_to_enable` returned."""
    return _write(name, lambda job: _as_overrides(job, columns), asked)


def ask_to_enable(job: Job, columns: Columns) -> Task | None:
    """Ask the gate of a job that is off, or new, and that these columns would enable; returns the task that was asked.

    Raises Refused with code `gate_closed`. A gate may take its time, so ask outside of any transaction.
    """
    task = _task_to_ask(job, columns)
    ask_gate(task)
    return task


@contextmanager
def kept_still(pk: int | None) -> Iterator[None]:
    """Let nobody else change a job meanwhile: what a change is compared with is what it then replaces.

    A transaction that writes from its first statement; one that reads first fails on SQLite when another writes.
    """
    using = Engine().using
    with write_transaction(using):
        if pk is not None:
            locked(Job.objects.using(using).filter(pk=pk)).first()
        yield


def remove_job(name: str) -> None:
    """Delete a job with its runs; refused for a job the code defines, which would come back at the next start."""
    job = get_job(name)
    if code_owns(job):
        text = f"{name!r} is defined in {job.source}; disable it, or remove its @register and start the scheduler once."
        raise Refused(text, code="code_owned")
    job.delete()


def code_owns(job: Job) -> bool:
    """Whether code defines the job, here or in another process, and would bring it back.

    Of code elsewhere the mark of an orphan tells, as long as nobody gave the job another task.
    """
    is_served = job.orphaned_at is None and job.task == job.name
    return bool(job.source) and (job.name in registry or is_served)


def checked_schedule(schedule: ScheduleLike, *, of: str = "") -> Schedule:
    """Return the schedule; refused when it is shorter than SCHEDULER_MIN_INTERVAL, when the job `of` would wait for
    itself, or when that is to follow what users do and its code does not expect it."""
    parsed = checked_interval(parse(schedule))
    if of:
        refuse_cycle(of, parsed, _parents_of)
        refuse_without_users(of, parsed)
    return parsed


def ask_gate(task: Task | None) -> None:
    """Raise Refused with code `gate_closed` when the gate of the task says no, or fails."""
    if task is not None and (reason := task.closed_gate()):
        raise Refused(f"{task.name!r} may not run; its gate is closed: {reason}", code="gate_closed")


def _parents_of(name: str) -> tuple[str, ...]:
    job = Job.objects.filter(name=name).first()
    return job.schedule.jobs if job is not None and isinstance(job.schedule, AfterJobs) else ()


def _change(name: str, columns_of: Callable[[Job], Columns]) -> Job:
    """Change a job that may be enabled by it: its gate is asked before anything is locked."""
    job = get_job(name)
    return _write(name, columns_of, ask_to_enable(job, columns_of(job)))


def _write(name: str, columns_of: Callable[[Job], Columns], asked: Task | None) -> Job:
    """Write what `columns_of` makes of the job as it is by now, whatever others did while a gate was asked."""

    def checked(job: Job) -> Columns:
        columns = columns_of(job)
        refuse_for_users(job, columns)
        task = _task_to_ask(job, columns)
        if task is not None and task is not asked:
            text = f"{name!r} was changed meanwhile, and the gate of {task.name!r} has not been asked; try again."
            raise Refused(text, code="gate_closed")
        return columns

    with _storing(name):
        rewrite(Job.objects.filter(name=name), checked)
    return get_job(name)


def _task_to_ask(job: Job, columns: Columns) -> Task | None:
    """Return the task with a gate that these columns would enable a job of."""
    if job.enabled or not columns.get("enabled"):
        return None
    task = registry.find(columns.get("task", job.task))
    return task if task is not None and task.gate is not None else None


@contextmanager
def _storing(name: str) -> Iterator[None]:
    """Write the definition of a job; raises InvalidOption when the database refuses it."""
    try:
        yield
    except DatabaseError as error:
        if not is_refusal(error):
            raise
        raise InvalidOption(f"The database does not take the job {name!r}: {error}") from error


CHECKS: dict[str, Callable[[Any], Any]] = {
    "task": lambda task: registry.get(task).name,
    "kwargs": checked_kwargs,
    "enabled": partial(checked_flag, "enabled"),
    "description": partial(checked_text, "description", longest=DESCRIPTION_LENGTH),
    "group": checked_group,
    "priority": checked_priority,
}
"""The columns people give as they are stored, each with what makes sure of that."""


def _columns_from(job: Job, changes: Mapping[str, Any]) -> Columns:
    """Return the columns that changes of plain columns, the schedule and policy options make of a job."""
    columns: Columns = {name: check(changes[name]) for name, check in CHECKS.items() if name in changes}
    if "schedule" in changes:
        columns["schedule"] = checked_schedule(changes["schedule"], of=job.name)
    options = {name: value for name, value in changes.items() if name not in columns}
    if options:
        present = {} if isinstance(job.policy, Unreadable) else differences(job.policy)
        columns["policy"] = from_options(present | options)
    return columns


def _as_overrides(job: Job, columns: Columns) -> Columns:
    """Return columns that a person changes with all that follows from it.

    What is as it was is no reason to plan anew, which would forget a slot that is due; a broken job is reset by it.
    """
    known = PLANNING_COLUMNS if job.broken_at is None else frozenset()
    found = {column: new for column, new in columns.items() if column not in known or getattr(job, column) != new}
    if "schedule" in found:
        found |= {"broken_at": None, "consecutive_failures": 0}
    if job.source:
        found["overridden_fields"] = sorted({*job.overridden_fields, *(columns.keys() & set(CODE_COLUMNS))})
    return found


def _columns_of_code(job: Job) -> Columns:
    if not job.source:
        raise Refused(
            f"{job.name!r} was made by people and follows no code; change it with update_job, or use remove_job.",
            code="not_from_code",
        )
    changes = differences_from_code(job, registry.get(job.name))
    if "schedule" in changes:
        refuse_cycle(job.name, changes["schedule"], _parents_of)  # with what people made of others
    return {"overridden_fields": [], **changes}
