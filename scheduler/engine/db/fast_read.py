"""Read what is asked often or in bulk, without the work that Django repeats for every query and every value."""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from functools import lru_cache, partial
from types import NoneType
from typing import Any, Generic, TypeVar

from django.core.exceptions import EmptyResultSet
from django.db import connections, models
from django.db.models.base import ModelState

from scheduler.models.distrust import NO_INSTANT, read_with_distrust
from scheduler.models.fields import InstantField, Number, Text

M = TypeVar("M", bound=models.Model)

SOME_INSTANT = datetime(1971, 1, 1, tzinfo=UTC)
"""Stands in a query that is compiled for the instant that will be asked about."""
SO_MANY = 987_654_321
"""Stands there for the most rows that will be asked for."""
LIMIT = f"LIMIT {SO_MANY}"
INSTANT: Any = InstantField()


class CompiledQuery:
    """A query that differs in some values at most from one time to the next, compiled once: `stands` stand for them."""

    def __init__(self, rows: models.QuerySet[Any, Any], *stands: Any) -> None:
        compiler = rows.query.get_compiler(using=rows.db)
        self._using = rows.db
        self._statement, self._parameters = compiler.as_sql()
        if LIMIT in self._statement:  # Django writes it into the statement, behind all parameters
            self._statement = self._statement.replace(LIMIT, "LIMIT %s")
            self._parameters = (*self._parameters, SO_MANY)
        self._converters = compiler.get_converters([one for one, *_ in compiler.select])
        places = [self._prepared(one) for one in stands or (SOME_INSTANT,)]
        self._places = {place: places.index(one) for place, one in enumerate(self._parameters) if one in places}

    def rows(self, *of: Any) -> Iterator[tuple[Any, ...]]:
        """Ask about values, in the order of those that stand for them; yields each row as `values_list` does."""
        given, known = [self._prepared(one) for one in of], self._places
        parameters = [given[known[place]] if place in known else other for place, other in enumerate(self._parameters)]
        return _read(self._using, self._statement, parameters, self._converters)

    def _prepared(self, value: Any) -> Any:
        is_instant = isinstance(value, datetime)
        return INSTANT.get_db_prep_value(value, connections[self._using]) if is_instant else value


class CompiledRows(Generic[M]):
    """A queryset that never differs, compiled once; of its rows, some columns are loaded when they are asked for."""

    def __init__(self, rows: models.QuerySet[M], *, without: Collection[str] = ()) -> None:
        columns = [field.attname for field in rows.model._meta.concrete_fields if field.name not in without]
        self._names = [*columns, *rows.query.annotation_select]
        self._model, self._using = rows.model, rows.db
        self._query = CompiledQuery(rows.values_list(*self._names))

    def read(self) -> list[M]:
        """Return what `list(rows.defer(*without))` does, in a fraction of the time; see `part_of`."""
        return _parts(self._model, self._using, self._names, self._query.rows())


def read_rows(rows: models.QuerySet[M]) -> list[M]:
    """Return what `list(rows)` does, for a queryset of whole rows, in a fraction of the time; see `part_of`."""
    names = [*(field.attname for field in rows.model._meta.concrete_fields), *rows.query.annotation_select]
    return _parts(rows.model, rows.db, names, read_values(rows))


def is_of_whole_rows(rows: models.QuerySet[Any]) -> bool:
    """Return whether `read_rows` reads such rows: with all columns, and nothing besides but annotations."""
    if rows._prefetch_related_lookups:  # type: ignore[attr-defined]
        return False
    query = rows.query
    is_whole = query.deferred_loading == (frozenset(), True) and not query.select_related
    return is_whole and query.default_cols and not query.extra_select


def read_values(rows: models.QuerySet[Any, Any]) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of a plain queryset as `values_list` does, in its order of columns, in a fraction of the time."""
    compiler = rows.query.get_compiler(using=rows.db)
    try:
        statement, parameters = compiler.as_sql()
    except EmptyResultSet:
        return
    yield from _read(rows.db, statement, parameters, compiler.get_converters([one for one, *_ in compiler.select]))


def _read(using: str, statement: str, parameters: Sequence[Any], converters: Any) -> Iterator[tuple[Any, ...]]:
    columns = list(zip(*_fetched(using, statement, parameters), strict=True))
    for position, (convert, expression) in converters.items() if columns else ():
        if not _needs_nothing(columns[position], expression.output_field):
            columns[position] = _converted(columns[position], convert, expression, connections[using])
    return zip(*columns, strict=True)


def read_union(rows: models.QuerySet[Any, Any], stands: Any, values: Sequence[Any]) -> Iterator[tuple[Any, ...]]:
    """Yield what a plain queryset reads for each of some values, which `stands` stands for in it: it is compiled once,
    and one SELECT for each is joined by UNION ALL."""
    compiler = rows.query.get_compiler(using=rows.db)
    try:
        statement, parameters = compiler.as_sql()
    except EmptyResultSet:
        return
    named = connections[rows.db].ops.quote_name
    terms = (f"SELECT * FROM ({statement}) {named(f'j{number}')}" for number in range(len(values)))
    given = [value if one == stands else one for value in values for one in parameters]
    converters = compiler.get_converters([one for one, *_ in compiler.select])
    yield from _read(rows.db, " UNION ALL ".join(terms), given, converters)


def read_parts(rows: models.QuerySet[M], names: Sequence[str]) -> list[M]:
    """Return what `list(rows.only(*names))` does, for a plain queryset, in a fraction of the time; see `part_of`."""
    names = [rows.model._meta.pk.attname, *names]
    return _parts(rows.model, rows.db, names, read_values(rows.values_list(*names)))


def _parts(model: type[M], using: str, names: Sequence[str], rows: Iterable[Iterable[Any]]) -> list[M]:
    return [part_of(model, using, names, values) for values in rows]


def part_of(model: type[M], using: str, names: Iterable[str], values: Iterable[Any]) -> M:
    """Return a row of which some columns are known, as `only` does: the others are loaded when they are asked for.

    Django looks at each field of the model for each row, which is most of the work where there are many. No signal
    of the model is sent.
    """
    row = model.__new__(model)
    row._state = ModelState()
    row._state.db, row._state.adding = using, False
    row.__dict__.update(zip(names, values, strict=True))
    return row


def _fetched(using: str, statement: str, parameters: Sequence[Any]) -> list[tuple[Any, ...]]:
    def fetch() -> list[tuple[Any, ...]]:
        with connections[using].cursor() as cursor:
            _read_instants_quickly(connections[using], cursor)
            cursor.execute(statement, parameters)
            rows: list[tuple[Any, ...]] = cursor.fetchall()
        return rows

    return read_with_distrust(using, fetch)


def _read_instants_quickly(connection: Any, cursor: Any) -> None:
    """Have this cursor read instants by the interpreter's own parser: psycopg takes ten times as long for each."""
    adapters = getattr(cursor.cursor, "adapters", None)
    if connection.vendor != "postgresql" or adapters is None or connection.timezone is not UTC:
        return
    from psycopg.pq import Format

    usual = adapters.get_loader(adapters.types["timestamptz"].oid, Format.TEXT)
    adapters.register_loader("timestamptz", _quick(usual))


@lru_cache(maxsize=64)
def _quick(usual: Any) -> type[Any]:
    """Return a loader of instants that leaves what is none of the usual ones, in UTC, to another loader."""

    def load(loader: Any, data: Any) -> Any:
        text = bytes(data).decode("ascii", "replace")
        try:
            return datetime.fromisoformat(text) if text.endswith("+00") else usual.load(loader, data)
        except ValueError:
            return usual.load(loader, data)

    return type("QuickInstant", (usual,), {"load": load})


def _needs_nothing(values: Sequence[Any], field: Any) -> bool:
    """Whether the driver has read all values as what they are: texts, numbers, nulls, and on SQLite instants."""
    types = set(map(type, values))
    if types == {NoneType}:
        return bool(field.null)
    if isinstance(field, InstantField):
        return types <= {datetime, NoneType} and all(
            one is None or (one.tzinfo is UTC and one is not NO_INSTANT) for one in values
        )
    return (isinstance(field, Text) and bytes not in types) or (isinstance(field, Number) and types == {int})


def _converted(values: Sequence[Any], converters: list[Any], expression: Any, connection: Any) -> Sequence[Any]:
    """Convert each distinct value once; a value that can be changed in place (JSON) is never shared between rows."""

    def convert(value: Any) -> Any:
        for step in converters:
            value = step(value, expression, connection)
        return value

    if isinstance(expression.output_field, InstantField) and connection.features.supports_timezones:
        return [convert(value) for value in values]  # on a wall clock, both hours of autumn are equal: not the same
    known = {value: convert(value) for value in set(values)}
    own = {value: _copier(convert, value, result) for value, result in known.items() if isinstance(result, dict | list)}
    if not own:
        return list(map(known.__getitem__, values))
    return [own[value]() if value in own else known[value] for value in values]


def _copier(convert: Callable[[Any], Any], value: Any, result: Any) -> Callable[[], Any]:
    """Return what makes a result for one row alone; an empty one needs no converting."""
    return partial(convert, value) if result else type(result)
