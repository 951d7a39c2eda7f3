"""Read: many rows at once. Django converts every value of every row; most columns of a batch repeat a few values."""

from collections.abc import Sequence
from typing import Any, TypeVar

from django.core.exceptions import EmptyResultSet
from django.db import connections, models

M = TypeVar("M", bound=models.Model)


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
    known: dict[Any, Any] = {}
    converted = []
    for value in values:
        result = known.get(value, known)
        if result is known:
            result = value
            for convert in converters:
                result = convert(result, expression, connection)
            if not isinstance(result, dict | list):
                known[value] = result
        converted.append(result)
    return converted
