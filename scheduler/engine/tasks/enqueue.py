"""Enqueue: write tasks that wait, inside the transaction of the caller. No job is locked, and none is updated."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache, lru_cache, partial
from typing import Any

from django.db import IntegrityError, connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import JSONField

from scheduler.clock import distinct
from scheduler.engine.db.bulk import insert_runs
from scheduler.engine.db.transactions import write_once, write_transaction
from scheduler.engine.tasks.carriers import Carrier, forget, job_of
from scheduler.exceptions import SchedulerError
from scheduler.models import Job, RunLog, Status, Trigger
from scheduler.models.fields import InstantField
from scheduler.signals import after_commit, tasks_enqueued

MOST_TRIES = 100
AT_ONCE = 1000
"""Rows of one statement."""
DUPLICATE, NO_PARENT = 1062, 1452
"""Errors of MySQL: the slot is taken; the job is not there."""
COLUMNS = ("job", "scheduled_for", "trigger", "status", "due_at", "priority", "kwargs", "actor")


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """A task that is to wait: its arguments, when it may start at the earliest, and what goes first among the due."""

    kwargs: dict[str, Any]
    due_at: datetime | None = None
    priority: int = 0
    actor: str = ""


def put(using: str, carrier: Carrier, task: Waiting, now: datetime) -> RunLog:
    """Write one task with one statement; returns its row.

    Its slot is the moment of this call, the next microsecond where that is taken. If the job is gone, or was made in a
    transaction that was rolled back, it is made again.
    """
    for _ in range(MOST_TRIES):
        run = _row(job_of(using, carrier), task, now)
        if _carry_out(using, partial(_insert, connections[using], run, carrier.name)):
            announce_tasks(using)
            return run
        if not Job.objects.using(using).filter(pk=run.job_id, name=carrier.name).exists():
            forget(using, carrier)
    raise SchedulerError(f"The task cannot be written: {MOST_TRIES} slots of {carrier.name!r} are taken.")


def announce_tasks(using: str) -> None:
    """Have this process's dispatcher look for tasks once those that were enqueued are committed."""
    after_commit(tasks_enqueued, RunLog, using=using)


def put_many(using: str, carrier: Carrier, tasks: Sequence[Waiting], now: datetime) -> list[RunLog]:
    """Write tasks, a thousand with one statement. If the job is gone, it is made again."""
    if not _is_there(using, carrier):
        forget(using, carrier)
    written = []
    for start in range(0, len(tasks), AT_ONCE):
        written += _put_together(using, carrier, tasks[start : start + AT_ONCE], now)
    announce_tasks(using)
    return written


def _put_together(using: str, carrier: Carrier, tasks: Sequence[Waiting], now: datetime) -> list[RunLog]:
    for _ in range(MOST_TRIES):
        job_id = job_of(using, carrier)
        rows = [_row(job_id, task, now) for task in tasks]
        outside = not connections[using].in_atomic_block
        try:
            with write_transaction(using) if outside else transaction.atomic(using=using):
                insert_runs(using, rows)
            return rows
        except IntegrityError as error:
            if not _is_there(using, carrier):  # deleted since it was looked for
                forget(using, carrier)
            elif not RunLog.objects.using(using).filter(job=job_id, scheduled_for__gte=rows[0].scheduled_for).exists():
                raise
            refused = error  # or another process has enqueued in one of these microseconds
    raise refused


def put_again(using: str, job_id: int, tasks: Sequence[Waiting], now: datetime) -> None:
    """Write tasks of a job that has carried some, with one statement. Raises IntegrityError when the job is gone."""
    for _ in range(MOST_TRIES):
        outside = not connections[using].in_atomic_block
        try:
            with write_transaction(using) if outside else transaction.atomic(using=using):
                insert_runs(using, [_row(job_id, task, now) for task in tasks])
            return
        except IntegrityError as error:
            if not Job.objects.using(using).filter(pk=job_id).exists():
                raise
            refused = error
    raise refused


def _is_there(using: str, carrier: Carrier) -> bool:
    """Return whether the job that this process knows of a carrier still exists."""
    return Job.objects.using(using).filter(pk=job_of(using, carrier), name=carrier.name).exists()


def _row(job_id: int, task: Waiting, now: datetime) -> RunLog:
    slot = distinct(now)
    return RunLog.of_id(
        job_id,
        scheduled_for=slot,
        trigger=str(Trigger.TASK),
        status=str(Status.PENDING),
        due_at=max(filter(None, (task.due_at, slot))),
        priority=task.priority,
        kwargs=task.kwargs,
        actor=task.actor,
    )


def _carry_out(using: str, write: Callable[[], int]) -> bool:
    """Write within the transaction of the caller; outside of one in a turn of its own, where one process may write."""
    return bool(write()) if connections[using].in_atomic_block else write_once(using, write)


def _insert(connection: BaseDatabaseWrapper, run: RunLog, name: str) -> int:
    """Insert a row if its job is there; returns 0 where it is not, or where the slot is taken.

    A conflict must not spoil a transaction of the caller, which PostgreSQL would give up, and a foreign key that is
    checked at the end of one would refuse all of it.
    """
    if connection.vendor == "mysql":
        return _insert_on_mysql(connection, run)
    job_id, *values = _values(connection, run)
    with connection.cursor() as cursor:
        cursor.execute(_statement(connection.alias), [*values, job_id, name])
        if written := int(cursor.rowcount):
            run.pk = cursor.fetchone()[0] if connection.vendor == "postgresql" else cursor.lastrowid
        return written


@lru_cache(maxsize=16)
def _statement(using: str) -> str:
    """Made once: that takes as long as to carry it out."""
    connection = connections[using]
    quote, server = connection.ops.quote_name, connection.vendor == "postgresql"
    places = ", ".join(f"%s::{field.rel_db_type(connection)}" if server else "%s" for field in _fields()[1:])
    return (
        f"{_insert_into(connection)} SELECT {quote('id')}, {places}"
        f" FROM {quote(Job._meta.db_table)} WHERE {quote('id')} = %s AND {quote('name')} = %s ON CONFLICT DO NOTHING"
        f"{' RETURNING id' if server else ''}"
    )


def _insert_on_mysql(connection: BaseDatabaseWrapper, run: RunLog) -> int:
    """Insert it there, where a statement that is refused spoils no transaction, and a foreign key is checked at once.

    INSERT … SELECT would hold the lock of the counter of ids while it waits for the row of the job.
    """
    places = ", ".join(["%s"] * len(COLUMNS))
    with connection.cursor() as cursor:
        try:
            cursor.execute(f"{_insert_into(connection)} VALUES ({places})", _values(connection, run))
        except IntegrityError as error:
            if error.args[:1] in ((DUPLICATE,), (NO_PARENT,)):
                return 0
            raise
        run.pk = cursor.lastrowid
        return int(cursor.rowcount)


def _values(connection: BaseDatabaseWrapper, run: RunLog) -> list[Any]:
    values = [getattr(run, field.attname) for field in _fields()]
    for place, field in _to_prepare():
        values[place] = field.get_db_prep_save(values[place], connection)
    return values


@cache
def _fields() -> list[Any]:
    return [RunLog._meta.get_field(column) for column in COLUMNS]


@cache
def _to_prepare() -> list[tuple[int, Any]]:
    """The columns whose values a driver does not take as they are: the others are texts and whole numbers."""
    return [(place, field) for place, field in enumerate(_fields()) if isinstance(field, InstantField | JSONField)]


def _insert_into(connection: BaseDatabaseWrapper) -> str:
    quote = connection.ops.quote_name
    names = ", ".join(quote(field.column) for field in _fields())
    return f"INSERT INTO {quote(RunLog._meta.db_table)} ({names})"
