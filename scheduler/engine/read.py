"""Read what is asked often or in bulk, without the work that Django does anew for every query and every value."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, TypeVar

from django.core.exceptions import EmptyResultSet
from django.db import connections, models

from scheduler.models.fields import InstantField

M = TypeVar("M", bound=models.Model)

SOME_INSTANT = datetime(1971, 1, 1, tzinfo=UTC)
"""Stands in a query that is compiled for the instant that will be asked about."""


class CompiledQuery:
    """A query that differs in one instant only from one time to the next, compiled once."""

    def __init__(self, rows: models.QuerySet[Any, tuple[Any, ...]]) -> None:
        compiler = rows.query.get_compiler(using=rows.db)
        self._using = rows.db
        self._statement, self._parameters = compiler.as_sql()
        self._converters = compiler.get_converters([one for one, *_ in compiler.select])
        self._places = {place for place, value in enumerate(self._parameters) if value == self._prepared(SOME_INSTANT)}

    def rows(self, at: datetime) -> Iterator[Sequence[Any]]:
        """Ask about `at`; yields each row as `values_list` does."""
        value, connection = self._prepared(at), connections[self._using]
        parameters = [value if place in self._places else other for place, other in enumerate(self._parameters)]
        with connection.cursor() as cursor:
            cursor.execute(self._statement, parameters)
            rows = cursor.fetchall()
        for row in rows:
            values = list(row)
            for place, (converters, expression) in self._converters.items():
                for convert in converters:
                    values[place] = convert(values[place], expression, connection)
            yield values

    def _prepared(self, at: datetime) -> Any:
        return InstantField().get_db_prep_value(at, connections[self._using])


def read_rows(rows: models.QuerySet[M]) -> list[M]:
    """Return what `list(rows)` does, for a plain queryset of whole rows, in less than half the time."""
    compiler = rows.query.get_compiler(using=rows.db)
    try:
        statement, parameters = compiler.as_sql()
    except EmptyResultSet:
        return []
    with connections[rows.db].cursor() as cursor:
        cursor.execute(statement, parameters)
        columns = list(zip(*cursor.fetchall(), strict=True))
    if not columns:
        return []
    for position, (convert, expression) in compiler.get_converters([one for one, *_ in compiler.select]).items():
        columns[position] = _converted(columns[position], convert, expression, connections[rows.db])
    names = [field.attname for field in rows.model._meta.concrete_fields]
    return [rows.model.from_db(rows.db, names, values) for values in zip(*columns, strict=True)]


def _converted(values: Sequence[Any], converters: list[Any], expression: Any, connection: Any) -> Sequence[Any]:
    """Convert each distinct value once; a value that can be changed in place (JSON) is never shared between rows."""

    def convert(value: Any) -> Any:
        for step in converters:
            value = step(value, expression, connection)
        return value

    if isinstance(expression.output_field, InstantField) and connection.features.supports_timezones:
        return [convert(value) for value in values]  # on a wall clock, both hours of autumn are equal: not the same
    known: dict[Any, Any] = {}
    converted = []
    for value in values:
        result = known.get(value, known)
        if result is known:
            result = convert(value)
            if not isinstance(result, dict | list):
                known[value] = result
        converted.append(result)
    return converted
