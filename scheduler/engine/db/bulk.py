"""Bulk: statements that write many rows at once, in the form each database carries out fastest."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from operator import attrgetter
from typing import Any, TypeVar

from django.db import connections, models
from django.db.backends.base.base import BaseDatabaseWrapper

from scheduler.exceptions import SchedulerError
from scheduler.models import RunLog

T = TypeVar("T")

Column = Sequence[Any]
LONGEST_STATEMENT = 1_000_000
"""Characters of text that one statement may carry; databases refuse packets above some 16 MB."""
MOST_JOINED = 500
"""Rows that MariaDB and MySQL are given in one statement: each is a SELECT of its own, which they parse in depth."""


class LostRace(SchedulerError):
    """Another instance changed the rows between reading and writing; nothing was written."""


def update_rows(
    using: str,
    model: type[models.Model],
    changes: Sequence[str],
    conditions: Sequence[str],
    rows: Iterable[Sequence[Any]],
) -> None:
    """Write many rows with one statement; raises LostRace when a row no longer meets its conditions.

    Each row holds the new values of `changes`, then the values that `conditions` must still have (None is not a value);
    the first condition is the primary key. Rows in the order of their keys are locked in that order.
    """
    connection = connections[using]
    fields = [model._meta.get_field(name) for name in (*changes, *conditions)]
    columns = _prepared(connection, fields, rows)
    if not columns:
        return
    write = FASTEST.get(connection.vendor, _one_by_one)
    if write(_Update(connection, model, fields, len(changes), columns)) != len(columns[0]):
        raise LostRace


@dataclass(frozen=True, slots=True)
class _Update:
    """New values and expected values of rows, as the driver takes them; each column of theirs has a name of its own."""

    connection: BaseDatabaseWrapper
    model: type[models.Model]
    fields: Sequence[Any]
    changed: int
    columns: Sequence[Column]

    @property
    def table(self) -> str:
        return self.connection.ops.quote_name(self.model._meta.db_table)

    @property
    def given(self) -> list[str]:
        return [f"c{number}" for number in range(len(self.fields))]

    def pairs(self, one: str) -> tuple[list[str], list[str]]:
        """Return the assignments and the conditions, each as `one` says."""
        names = [self.connection.ops.quote_name(field.column) for field in self.fields]
        pairs = [one.format(table=self.table, name=name, given=c) for name, c in zip(names, self.given, strict=True)]
        return pairs[: self.changed], pairs[self.changed :]

    def parts(self, size: int) -> "Iterator[_Update]":
        """Yield updates of at most `size` rows each."""
        for start in range(0, len(self.columns[0]), size):
            yield replace(self, columns=[column[start : start + size] for column in self.columns])

    def rows(self) -> list[tuple[Any, ...]]:
        return list(zip(*self.columns, strict=True))


def _one_by_one(update: _Update) -> int:
    """The fastest way where the database is part of the process (SQLite)."""
    changes, conditions = update.pairs("{name} = %s")
    statement = f"UPDATE {update.table} SET {', '.join(changes)} WHERE {' AND '.join(conditions)}"
    with update.connection.cursor() as cursor:
        cursor.executemany(statement, update.rows())
        return int(cursor.rowcount)


def _from_arrays(update: _Update) -> int:
    """PostgreSQL: one statement, joined with one array a column."""
    changes = update.pairs("{name} = given.{given}")[0]
    conditions = update.pairs("{table}.{name} = given.{given}")[1]
    arrays = ", ".join(f"%s::{field.rel_db_type(update.connection)}[]" for field in update.fields)
    statement = (
        f"UPDATE {update.table} SET {', '.join(changes)}"
        f" FROM unnest({arrays}) AS given({', '.join(update.given)}) WHERE {' AND '.join(conditions)}"
    )
    with update.connection.cursor() as cursor:
        cursor.execute(statement, [list(column) for column in update.columns])
        return int(cursor.rowcount)


def _joined(update: _Update) -> int:
    """MariaDB and MySQL: one statement, joined with the rows; these are read first, so that only theirs are locked."""
    rows = update.rows()
    if len(rows) > MOST_JOINED:
        return sum(_joined(part) for part in update.parts(MOST_JOINED))
    if sum(len(value) for row in rows for value in row if isinstance(value, str)) > LONGEST_STATEMENT:
        return _one_by_one(update)
    changes, conditions = update.pairs("{table}.{name} = given.{given}")
    first = "SELECT " + ", ".join(f"%s AS {name}" for name in update.given)
    other = " UNION ALL SELECT " + ", ".join(["%s"] * len(update.given))
    statement = (
        f"UPDATE ({first}{other * (len(rows) - 1)}) given STRAIGHT_JOIN {update.table}"
        f" ON {' AND '.join(conditions)} SET {', '.join(changes)}"
    )
    with update.connection.cursor() as cursor:
        cursor.execute(statement, [value for row in rows for value in row])
        return int(cursor.rowcount)


FASTEST = {"postgresql": _from_arrays, "mysql": _joined}


def insert_runs(using: str, runs: Sequence[RunLog]) -> None:
    """Insert rows of the ledger; every row knows its id afterwards. Columns no row fills are left to the database."""
    if not runs:
        return
    fields = [field for field in RunLog._meta.concrete_fields if _is_filled(field, runs)]
    for run, pk in zip(runs, insert_rows(using, fields, runs), strict=False):
        run.pk = pk
    for run in runs:
        if run.pk is None:
            run.pk = _id_of(using, run)


def insert_rows(using: str, fields: Sequence[Any], rows: Sequence[models.Model]) -> list[int]:
    """Insert rows of a model with these fields; returns their ids in order, or none where the database cannot say."""
    connection, ids = connections[using], list[int]()
    read = attrgetter(*(field.attname for field in fields))
    for part in _parts(connection, fields, rows):
        columns = _prepared(connection, fields, map(read, part))
        ids += _insert(connection, fields, list(zip(*columns, strict=True)))
    return ids


def insert_values(using: str, fields: Sequence[Any], rows: Sequence[Sequence[Any]]) -> None:
    """Insert rows whose ids are not needed: each has a value for each of the fields."""
    connection = connections[using]
    if connection.vendor == "sqlite":  # nothing to parse but once, and no round trips
        columns = _prepared(connection, fields, rows)
        with connection.cursor() as cursor:
            cursor.executemany(_insertion(connection, fields, 1), list(zip(*columns, strict=True)))
        return
    for part in _parts(connection, fields, rows):
        columns = _prepared(connection, fields, part)
        _insert(connection, fields, list(zip(*columns, strict=True)), has_ids=False)


def _parts(connection: BaseDatabaseWrapper, fields: Sequence[Any], rows: Sequence[T]) -> Iterator[Sequence[T]]:
    """Yield as many rows at a time as one statement takes."""
    size = max(1, (connection.features.max_query_params or 30_000) // max(1, len(fields)))
    return (rows[start : start + size] for start in range(0, len(rows), size))


def _is_filled(field: Any, runs: Sequence[RunLog]) -> bool:
    if field.primary_key:
        return False
    default = field.get_default()
    is_left = field.null or field.db_default is not models.NOT_PROVIDED
    return not is_left or list(map(attrgetter(field.attname), runs)) != [default] * len(runs)


def _insertion(connection: BaseDatabaseWrapper, fields: Sequence[Any], count: int) -> str:
    """Return the statement that inserts so many rows."""
    quote, table = connection.ops.quote_name, fields[0].model._meta.db_table
    columns = ", ".join(quote(field.column) for field in fields)
    places = ", ".join(["(" + ", ".join(["%s"] * len(fields)) + ")"] * count)
    return f"INSERT INTO {quote(table)} ({columns}) VALUES {places}"


def _insert(
    connection: BaseDatabaseWrapper, fields: Sequence[Any], rows: Sequence[Sequence[Any]], *, has_ids: bool = True
) -> list[int]:
    """Insert the rows with one statement; return their ids in order, or nothing where the database cannot say."""
    statement = _insertion(connection, fields, len(rows))
    returning = has_ids and connection.features.can_return_rows_from_bulk_insert
    if returning:
        statement += f" RETURNING {connection.ops.quote_name('id')}"
    with connection.cursor() as cursor:
        cursor.execute(statement, [value for row in rows for value in row])
        return [pk for (pk,) in cursor.fetchall()] if returning else []


def _id_of(using: str, run: RunLog) -> int:
    """For databases that cannot return the ids of inserted rows (MySQL)."""
    ids = RunLog.objects.using(using).values_list("pk", flat=True)
    return ids.get(job_id=run.job_id, scheduled_for=run.scheduled_for, attempt=run.attempt)


def _prepared(connection: BaseDatabaseWrapper, fields: Sequence[Any], rows: Iterable[Sequence[Any]]) -> list[Column]:
    """Return the columns in the form the database driver takes; most of them repeat a few values."""
    columns = list(zip(*rows, strict=True))
    return (
        [_column(connection, field, column) for field, column in zip(fields, columns, strict=True)] if columns else []
    )


def _column(connection: BaseDatabaseWrapper, field: Any, values: Sequence[Any]) -> list[Any]:
    prepare = partial(field.get_db_prep_save, connection=connection)
    try:
        prepared = {value: prepare(value) for value in set(values)}
    except TypeError:  # not hashable: JSON, and mostly empty
        empty = prepare({})
        return [empty if value == {} else prepare(value) for value in values]
    return [prepared[value] for value in values]
