"""Add: raise counters in the database, many in one statement, without reading them first."""

from collections.abc import Sequence
from typing import Any

from django.db import connections, models
from django.db.backends.base.base import BaseDatabaseWrapper

Row = Sequence[Any]
SUM, SUM_ON_MYSQL = "{column} = {table}.{column} + excluded.{column}", "{column} = {column} + VALUES({column})"


def add_rows(
    using: str, model: type[models.Model], key: Sequence[str], amounts: Sequence[str], rows: Sequence[Row]
) -> None:
    """Add to the counters `amounts` of rows that `key`, a primary key, names; rows that are not there begin with them.

    Each row has its key, then its amounts, as numbers and texts; no key comes twice. Rows in the order of their keys
    are locked in that order. By the primary key MariaDB locks nothing but the rows themselves.
    """
    if not rows:
        return
    connection = connections[using]
    insert, suffix = _statement(connection, model, key, amounts)
    places = "(" + ", ".join(["%s"] * len(rows[0])) + ")"
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":  # nothing to parse but once, and no round trips
            cursor.executemany(f"{insert} {places} {suffix}", rows)
            return
        size = max(1, 30_000 // len(rows[0]))
        for start in range(0, len(rows), size):
            batch = rows[start : start + size]
            statement = f"{insert} {', '.join([places] * len(batch))} {suffix}"
            cursor.execute(statement, [value for row in batch for value in row])


def _statement(
    connection: BaseDatabaseWrapper, model: type[models.Model], key: Sequence[str], amounts: Sequence[str]
) -> tuple[str, str]:
    quote = connection.ops.quote_name
    table, names = quote(model._meta.db_table), [quote(name) for name in key]
    sums = [quote(name) for name in amounts]
    insert = f"INSERT INTO {table} ({', '.join([*names, *sums])}) VALUES"
    form = SUM_ON_MYSQL if connection.vendor == "mysql" else SUM
    changes = ", ".join(form.format(table=table, column=name) for name in sums)
    if connection.vendor == "mysql":
        return insert, f"ON DUPLICATE KEY UPDATE {changes}"
    return insert, f"ON CONFLICT ({', '.join(names)}) DO UPDATE SET {changes}"
