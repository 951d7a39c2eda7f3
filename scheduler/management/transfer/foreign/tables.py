"""Tables of other packages, read by SQL: also where the package is no longer installed. Nothing is written to them."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from django.conf import settings
from django.db import connections
from django.utils.connection import ConnectionDoesNotExist

from scheduler.exceptions import ConfigurationError, InvalidOption
from scheduler.safetext import shown
from scheduler.schedules.base import as_utc

UNREADABLE = (ConfigurationError, AttributeError, KeyError, OverflowError, TypeError, ValueError)
"""What rows raise that hold other values than their package writes."""
Row = dict[str, Any]
"""A row as the driver gives it, by the names of its columns."""


class Tables:
    """The tables of one database; raises InvalidOption for an alias that the settings do not have."""

    def __init__(self, using: str) -> None:
        try:
            self.connection = connections[using]
        except ConnectionDoesNotExist:
            raise InvalidOption(f"--database {using} is none of DATABASES.") from None
        self.using = using
        with self.connection.cursor() as cursor:
            self._names = set(self.connection.introspection.table_names(cursor))

    def rows(self, table: str, *, order: str = "id", optional: bool = False) -> list[Row]:
        """Return all rows of a table; raises InvalidOption where it is not there, unless that is `optional`."""
        if table not in self._names:
            if optional:
                return []
            raise InvalidOption(f"The database {self.using!r} has no table {table}; say with --database where it is.")
        quote = self.connection.ops.quote_name
        with self.connection.cursor() as cursor:
            cursor.execute(f"SELECT * FROM {quote(table)} ORDER BY {quote(order)}")
            names = [column[0] for column in cursor.description]
            return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]

    def by_id(self, table: str) -> dict[Any, Row]:
        """Return the rows of a table that may be missing, by their ids."""
        return {row["id"]: row for row in self.rows(table, optional=True)}

    def instant(self, value: Any) -> datetime | None:
        """Return an instant that Django stored, in UTC; raises InvalidOption for what is none."""
        if value in (None, ""):
            return None
        try:
            at = value if isinstance(value, datetime) else datetime.fromisoformat(str(value))
        except ValueError:
            raise InvalidOption(f"{shown(value)} is no instant.") from None
        if at.tzinfo is None:
            name = self.connection.timezone_name if settings.USE_TZ else settings.TIME_ZONE
            at = at.replace(tzinfo=ZoneInfo(name))
        return as_utc(at)


def texts(row: Row, names: Sequence[str]) -> dict[str, str]:
    """Return those of some columns that are set, as text; a release that lacks a column has it unset."""
    return {name: str(row[name]) for name in names if row.get(name) not in (None, "", "{}", "[]")}
