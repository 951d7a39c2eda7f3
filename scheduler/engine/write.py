"""Write transactions, and statements that write many rows."""

import os
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from operator import attrgetter
from typing import Any, TypeVar

from django.db import connections, models, transaction
from django.db.backends.base.base import BaseDatabaseWrapper

from scheduler.exceptions import SchedulerError
from scheduler.models import Instance, RunLog

M = TypeVar("M", bound=models.Model)
Row = tuple[Any, ...]


class LostRace(SchedulerError):
    """Another instance changed the rows between reading and writing; nothing was written."""


_one_writer = threading.RLock()
TAKE_WRITE_LOCK = f"UPDATE {Instance._meta.db_table} SET pid = pid WHERE 0"


def _renew_lock() -> None:
    global _one_writer
    _one_writer = threading.RLock()


os.register_at_fork(after_in_child=_renew_lock)


@contextmanager
def write_transaction(using: str) -> Iterator[None]:
    """A transaction that writes from its first statement.

    Databases with row locks need nothing more. SQLite has one writer: a transaction that reads first and then writes
    fails at once with “database is locked” when another one wrote in between, whatever the timeout, so the first
    statement takes the write lock. Inside one process the threads take turns before that, because SQLite's own
    waiting sleeps and can starve one of them.
    """
    if connections[using].features.has_select_for_update:
        with transaction.atomic(using=using):
            yield
        return
    with _one_writer, transaction.atomic(using=using):
        with connections[using].cursor() as cursor:
            cursor.execute(TAKE_WRITE_LOCK)
        yield


def locked(rows: models.QuerySet[M], *, skip_locked: bool = False) -> models.QuerySet[M]:
    """Lock the rows where the database can; elsewhere the write transaction already holds the only lock there is."""
    features = connections[rows.db].features
    if not features.has_select_for_update:
        return rows
    skip_locked = skip_locked and features.has_select_for_update_skip_locked
    of = ("self",) if features.has_select_for_update_of else ()
    return rows.select_for_update(skip_locked=skip_locked, of=of)


def update_rows(
    using: str,
    model: type[models.Model],
    changes: Sequence[str],
    conditions: Sequence[str],
    rows: Iterable[Sequence[Any]],
) -> None:
    """Write many rows with one statement; raises LostRace when a row no longer meets its conditions.

    Each row holds the new values of `changes`, then the values that `conditions` must still have (None is not a value).
    """
    connection = connections[using]
    fields: list[Any] = [model._meta.get_field(name) for name in (*changes, *conditions)]
    prepared = _prepared(connection, fields, rows)
    if not prepared:
        return
    quote = connection.ops.quote_name
    columns = [f"{quote(field.column)} = %s" for field in fields]
    assignments, wheres = ", ".join(columns[: len(changes)]), " AND ".join(columns[len(changes) :])
    with connection.cursor() as cursor:
        cursor.executemany(f"UPDATE {quote(model._meta.db_table)} SET {assignments} WHERE {wheres}", prepared)
        if cursor.rowcount != len(prepared):
            raise LostRace


def insert_runs(using: str, runs: Sequence[RunLog]) -> None:
    """Insert rows of the ledger; every row knows its id afterwards. Columns no row fills are left to the database."""
    connection = connections[using]
    fields = [field for field in RunLog._meta.concrete_fields if _is_filled(field, runs)]
    size = max(1, (connection.features.max_query_params or 30_000) // max(1, len(fields)))
    read = attrgetter(*(field.attname for field in fields))
    for start in range(0, len(runs), size):
        batch = runs[start : start + size]
        ids = _insert(connection, fields, _prepared(connection, fields, map(read, batch)))
        for run, pk in zip(batch, ids, strict=False):
            run.pk = pk
    for run in runs:
        if run.pk is None:
            run.pk = _id_of(using, run)


def _is_filled(field: Any, runs: Sequence[RunLog]) -> bool:
    if field.primary_key:
        return False
    default = field.get_default()
    return not (field.null or field.db_default is not models.NOT_PROVIDED) or any(
        getattr(run, field.attname) != default for run in runs
    )


def _insert(connection: BaseDatabaseWrapper, fields: Sequence[Any], rows: Sequence[Sequence[Any]]) -> list[int]:
    """Insert the rows with one statement; return their ids in order, or nothing where the database cannot say."""
    quote = connection.ops.quote_name
    columns = ", ".join(quote(field.column) for field in fields)
    places = ", ".join(["(" + ", ".join(["%s"] * len(fields)) + ")"] * len(rows))
    statement = f"INSERT INTO {quote(RunLog._meta.db_table)} ({columns}) VALUES {places}"
    returning = connection.features.can_return_rows_from_bulk_insert
    if returning:
        statement += f" RETURNING {quote('id')}"
    with connection.cursor() as cursor:
        cursor.execute(statement, [value for row in rows for value in row])
        return [pk for (pk,) in cursor.fetchall()] if returning else []


def _id_of(using: str, run: RunLog) -> int:
    """For databases that cannot return the ids of inserted rows (MySQL)."""
    ids = RunLog.objects.using(using).values_list("pk", flat=True)
    return ids.get(job_id=run.job_id, scheduled_for=run.scheduled_for, attempt=run.attempt)


def _prepared(connection: BaseDatabaseWrapper, fields: Sequence[Any], rows: Iterable[Sequence[Any]]) -> list[Row]:
    """Give the values the form the database driver takes, column by column: most columns repeat a few values."""
    columns = list(zip(*rows, strict=True))
    if not columns:
        return []
    prepared = (_column(connection, field, column) for field, column in zip(fields, columns, strict=True))
    return list(zip(*prepared, strict=True))


def _column(connection: BaseDatabaseWrapper, field: Any, values: Sequence[Any]) -> list[Any]:
    prepare = partial(field.get_db_prep_save, connection=connection)
    try:
        prepared = {value: prepare(value) for value in set(values)}
    except TypeError:  # not hashable: JSON, and mostly empty
        empty = prepare({})
        return [empty if value == {} else prepare(value) for value in values]
    return [prepared[value] for value in values]
