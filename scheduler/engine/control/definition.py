"""Definitions: add and change jobs."""

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Unpack

from django.db import DatabaseError

from scheduler.arguments import checked_name, checked_text
from scheduler.definition import CHECKS, COLUMNS, Definition, checked_interval
from scheduler.engine.base import Engine
from scheduler.engine.control.calls import refuse_wrong_call
from scheduler.engine.control.forusers import refuse_for_users, refuse_without_users
from scheduler.engine.control.gate import Columns, ask_to_enable, task_to_ask
from scheduler.engine.control.keyed import Begun, KeyedRequest
from scheduler.engine.control.lookup import get_job
from scheduler.engine.control.plan_now import plan_at_once
from scheduler.engine.control.versions import IfVersion, refuse_other_version, unchanged
from scheduler.engine.db.shared_time import shared_now
from scheduler.engine.db.transactions import is_of_row, rewrite, write_transaction
from scheduler.engine.dependencies import replan_dependents
from scheduler.engine.events import creations, write_events
from scheduler.engine.sync.follow_code import CODE_COLUMNS, differences_from_code
from scheduler.engine.sync.overrides import OPTIONS, overridden_by
from scheduler.exceptions import InvalidOption, Refused
from scheduler.models import Job
from scheduler.models.job_columns import PLANNING_COLUMNS
from scheduler.models.primary import locked
from scheduler.models.stored import Unreadable
from scheduler.options import Changes, Given, ScheduleLike, refuse_unknown
from scheduler.policy.base import differences
from scheduler.policy.codec import from_options
from scheduler.registry import Task, registry
from scheduler.schedules import Schedule, parse, refuse_cycle


def add_job(name: str, task: str, schedule: ScheduleLike, *, actor: str = "", **given: Unpack[Given]) -> Job:
    """Create a job for a registered task; raises InvalidSchedule, InvalidOption, UnknownTask or, if the name is taken,
    Refused with code `exists`. `actor` is who does so, for its history, as everywhere."""
    return _add(_whole(name, task, schedule, given), actor)


def set_job(
    name: str, task: str, schedule: ScheduleLike, *, actor: str = "", if_version: IfVersion = None,
    **given: Unpack[Given],
) -> tuple[Job, bool]:  # fmt: skip
    """Create a job, or replace its definition; returns the job and whether it is new. Raises what `add_job` raises.

    What is not given has its default afterwards. The same definition again changes nothing, no plan either. With
    `if_version`, see `update_job`, no job is created.
    """
    return _set(_whole(name, task, schedule, given), actor, if_version, None)


def set_job_once(
    keyed: KeyedRequest, name: str, task: str, schedule: ScheduleLike, *, actor: str = "", if_version: IfVersion = None,
    **given: Unpack[Given],
) -> tuple[Job, bool]:  # fmt: skip
    """As `set_job`; sent again with the same key, it returns what it did then."""
    return keyed.once(
        lambda begun: _set(_whole(name, task, schedule, given), actor, if_version, begun),
        lambda before: (get_job(name), before.created),
    )


def add_job_once(
    keyed: KeyedRequest | None, name: str, task: str, schedule: ScheduleLike, *, actor: str = "", **given: Unpack[Given]
) -> tuple[Job, bool]:
    """As `add_job`; sent again with the same key, it returns what it did then. Never changes a job that is there."""
    if keyed is None:
        return add_job(name, task, schedule, actor=actor, **given), True
    return keyed.once(
        lambda begun: (_add(_whole(name, task, schedule, given), actor, begun), True),
        lambda before: (get_job(name), before.created),
    )


def _set(columns: Columns, actor: str, if_version: IfVersion, begun: Begun | None) -> tuple[Job, bool]:
    name: str = columns["name"]
    if not Job.objects.filter(name=name).exists():
        refuse_other_version(name, None, if_version)
        try:
            return _add(columns, actor, begun), True
        except Refused as refusal:
            if refusal.code != "exists":
                raise
    return _change(name, lambda job: _replaced(job, columns), actor, if_version, begun), False


def compare_job(
    job: Job | None, name: str, task: str, schedule: ScheduleLike, **given: Unpack[Given]
) -> list[str] | None:
    """Return the columns that `set_job` would change, sorted; None where it would create the job. Writes nothing.

    `job` is the job of this name as it was read, None where there is none. Raises what `set_job` raises, for the same
    reasons.
    """
    columns = _whole(name, task, schedule, given)
    changed = columns if job is None else _replaced(job, columns)
    refuse_for_users(job or Job(name=name), changed)
    refuse_wrong_call(job or Job(name=name), changed)
    ask_to_enable(job or Job(enabled=False), changed)
    return None if job is None else sorted(changed.keys() & columns.keys())


def _whole(name: str, task: str, schedule: ScheduleLike, given: Mapping[str, Any]) -> Columns:
    """Return the checked columns of a whole definition."""
    refuse_unknown(given, ("name", *Changes.__annotations__))
    checked_name(name)
    plain = {column: value for column, value in given.items() if column in COLUMNS}
    options = {option: value for option, value in given.items() if option not in plain}
    if plain.get("kwargs", {}) is None:
        del plain["kwargs"]
    definition = Definition(schedule=checked_schedule(schedule, of=name), policy=from_options(options), **plain)
    return {"name": name, "task": registry.get(task).name, **definition.columns()}


def _add(columns: Columns, actor: str, begun: Begun | None = None) -> Job:
    checked_text("actor", actor)
    ask_to_enable(Job(enabled=False), columns)
    return insert_job(columns, actor, begun)


def _replaced(job: Job, columns: Columns) -> Columns:
    """Return the columns of a definition that differ from what the job has."""
    return _as_overrides(job, {column: new for column, new in columns.items() if getattr(job, column) != new})


def update_job(name: str, *, actor: str = "", if_version: IfVersion = None, **changes: Unpack[Changes]) -> Job:
    """Change the definition of a job: schedule, kwargs, enabled, description, task, or any policy option.

    What the code defines and a person changes is remembered as overridden, and kept across deploys: a column, or one
    option of the policy. The rest follows the code. An explicit change of the schedule also resets a broken job.
    Raises Refused with code `gate_closed` where the change would start the job again, and its gate is closed; with
    code `changed` when `if_version`, the `version_tag` of the job as it was read, is not what it has by now.
    """
    refuse_unknown(changes, Changes.__annotations__)
    options = changes.keys() & set(OPTIONS)
    return _change(name, lambda job: _as_overrides(job, _columns_from(job, changes), options), actor, if_version)


def follow_code(name: str, *, actor: str = "", if_version: IfVersion = None) -> Job:
    """Drop every change people made to a job that the code defines: the code registered under the job's own name.

    Raises UnknownTask when that is not registered here, and Refused with code `not_from_code` for a job that people
    made, `gate_closed` when the job would be enabled, or `changed` as `update_job`; InvalidSchedule when the job would
    wait for itself.
    """
    return _change(name, _columns_of_code, actor, if_version)


def insert_job(columns: Columns, actor: str = "", begun: Begun | None = None) -> Job:
    """Store a new job of checked columns, with no question to a gate; see `add_job`."""
    job = Job(**columns, created_at=shared_now(Engine().using))
    refuse_for_users(job, columns)
    refuse_wrong_call(job, columns)
    try:
        with _storing(job.name), write_transaction(Engine().using):
            job.save(force_insert=True)
            write_events(Engine().using, creations([job], actor))
            plan_at_once(Job.objects.filter(pk=job.pk))
            replan_dependents(Engine().using, {job.name})
            if begun is not None:
                begun.remember(job.pk)
    except InvalidOption:
        if Job.objects.filter(name=job.name).exists():
            text = f"A job {job.name!r} exists already; change it with update_job."
            raise Refused(text, code="exists") from None
        raise
    job.refresh_from_db()
    return job


def write_definition(name: str, columns: Columns, asked: Task | None, actor: str = "") -> Job:
    """Write checked columns of a job's definition; see `update_job`. `asked` is what `ask_to_enable` returned."""
    return _write(name, lambda job: _as_overrides(job, columns), asked, actor)


@contextmanager
def kept_still(pk: int | None) -> Iterator[None]:
    """Keep others from changing a job within the block: a change replaces exactly what it was compared with.

    A transaction that writes from its first statement; one that reads first fails on SQLite when another writes.
    """
    using = Engine().using
    with write_transaction(using):
        if pk is not None:
            locked(Job.objects.using(using).filter(pk=pk)).first()
        yield


def checked_schedule(schedule: ScheduleLike, *, of: str = "") -> Schedule:
    """Return the schedule; refused when it is shorter than SCHEDULER_MIN_INTERVAL, when the job `of` would wait for
    itself, or when that is to follow what users do and its code does not expect it."""
    parsed = checked_interval(parse(schedule))
    if of:
        refuse_cycle(of, parsed, _parents_of)
        refuse_without_users(of, parsed)
    return parsed


def _parents_of(name: str) -> tuple[str, ...]:
    job = Job.objects.filter(name=name).first()
    return () if job is None else job.schedule.parents


def _change(
    name: str,
    columns_of: Callable[[Job], Columns],
    actor: str,
    if_version: IfVersion,
    begun: Begun | None = None,
) -> Job:
    """Change a job that may be enabled by it: its gate is asked before anything is locked."""
    checked_text("actor", actor)
    job = get_job(name)
    refuse_other_version(name, job, if_version)
    return _write(name, columns_of, ask_to_enable(job, columns_of(job)), actor, if_version, begun)


def _write(
    name: str, columns_of: Callable[[Job], Columns], asked: Task | None, actor: str, if_version: IfVersion = None,
    begun: Begun | None = None,
) -> Job:  # fmt: skip
    """Write what `columns_of` makes of the job as it is by now, whatever others did while a gate was asked."""

    def checked(job: Job) -> Columns:
        columns = columns_of(job)
        refuse_for_users(job, columns)
        refuse_wrong_call(job, columns)
        task = task_to_ask(job, columns)
        if task is not None and task is not asked:
            text = f"{name!r} has just been changed, and the gate of {task.name!r} has not been asked; try again."
            raise Refused(text, code="gate_closed")
        return columns

    with _storing(name), unchanged(name, if_version):
        rewrite(Job.objects.filter(name=name), checked, actor=actor)
        plan_at_once(Job.objects.filter(name=name))
        if begun is not None:
            begun.remember(Job.objects.get(name=name).pk, created=False)
    return get_job(name)


@contextmanager
def _storing(name: str) -> Iterator[None]:
    """Write the definition of a job; raises InvalidOption when the database refuses it."""
    try:
        yield
    except DatabaseError as error:
        if not is_of_row(error):
            raise
        raise InvalidOption(f"The database does not take the job {name!r}: {error}") from error


def _columns_from(job: Job, changes: Mapping[str, Any]) -> Columns:
    """Return the columns that changes of plain columns, the schedule and policy options make of a job."""
    columns: Columns = {name: CHECKS[name](changes[name]) for name in changes.keys() & CHECKS.keys() - {"schedule"}}
    if "task" in changes:
        columns["task"] = registry.get(changes["task"]).name
    if "schedule" in changes:
        columns["schedule"] = checked_schedule(changes["schedule"], of=job.name)
    options = {name: value for name, value in changes.items() if name not in columns}
    if options:
        present = {} if isinstance(job.policy, Unreadable) else differences(job.policy)
        columns["policy"] = from_options(present | options)
    return columns


def _as_overrides(job: Job, columns: Columns, options: Collection[str] = ()) -> Columns:
    """Return columns that a person changes with all that follows from it; `options` are those named, changed or not.

    Unchanged columns must not trigger replanning, which would drop a due slot; but they reset a broken job.
    """
    known = PLANNING_COLUMNS if job.broken_at is None else frozenset()
    found = {column: new for column, new in columns.items() if column not in known or getattr(job, column) != new}
    if "schedule" in found:
        found |= {"broken_at": None, "consecutive_failures": 0}
    overridden = _overridden(job, columns, options)
    if found or overridden != job.overridden_fields:  # nothing at all is no new version of the job
        found["overridden_fields"] = overridden
    return found


def _overridden(job: Job, columns: Columns, options: Collection[str]) -> list[str]:
    """Return what people have changed of what the code defines, with these columns too."""
    if not job.source:
        return list(job.overridden_fields)
    of_code = {name: new for name, new in columns.items() if name in CODE_COLUMNS}
    return sorted({*job.overridden_fields, *overridden_by(job, of_code, options)})


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
