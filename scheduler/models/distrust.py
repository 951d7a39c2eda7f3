"""Distrust: a value that the driver of a database cannot read costs no other row of a query.

SQLite keeps texts that are no UTF-8, PostgreSQL instants that no `datetime` has: the driver raises an error for the
whole query. It is asked once more then, and reads what it can of such values. Only our queries are read that way: in
the tables of others it would hide what is wrong with them.
"""

import logging
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime
from typing import Any, TypeVar

from django.db import DatabaseError, DataError, OperationalError, connections

logger = logging.getLogger("scheduler")

R = TypeVar("R")

NO_INSTANT = datetime.min.replace(tzinfo=UTC)
"""What a driver gives for what is no instant."""
NO_UTF8 = "Could not decode to UTF-8"

met: set[str] = set()
"""The databases in which such a value was met, or bytes for a text: the next look for spoiled values looks at texts."""
_told: set[str] = set()


def read_with_distrust(using: str, read: Callable[[], R]) -> R:
    """Return what `read` returns; where the driver cannot read a value, ask once more, and let it pass."""
    try:
        return read()
    except (OperationalError, DataError) as error:
        lenient = _lenient(connections[using], error)
        if lenient is None:
            raise
        met.add(using)
        if using not in _told:
            _told.add(using)
            text = "A row in the database %r holds a value that cannot be read; the others are read all the same: %s"
            logger.warning(text, using, error, extra={"action": "value_unreadable"})
    with lenient:
        return read()


def decoded(text: str | bytes) -> str:
    """Return the text; bytes that are no UTF-8 are marked in it."""
    return text.decode(errors="replace") if isinstance(text, bytes) else text


def _lenient(connection: Any, error: DatabaseError) -> AbstractContextManager[None] | None:
    """Return how the driver reads such values; None where the error is another one."""
    if connection.vendor == "sqlite" and NO_UTF8 in str(error):
        return _any_text(connection.connection)
    is_of_driver = isinstance(error, DataError) and getattr(error.__cause__, "sqlstate", "") is None
    if connection.vendor == "postgresql" and is_of_driver:
        return _any_instant(connection)
    return None


@contextmanager
def _any_text(driver: Any) -> Iterator[None]:
    before, driver.text_factory = driver.text_factory, decoded
    try:
        yield
    finally:
        driver.text_factory = before


@contextmanager
def _any_instant(connection: Any) -> Iterator[None]:
    """As with Django's own loader, which is of the zone of the connection: else it would register that instead."""
    from psycopg import DataError as DriverDataError
    from psycopg.pq import Format

    adapters = connection.connection.adapters
    before: Any = adapters.get_loader(adapters.types["timestamptz"].oid, Format.TEXT)

    def load(loader: Any, data: Any) -> datetime:
        try:
            return before.load(loader, data)  # type: ignore[no-any-return]
        except DriverDataError:
            return NO_INSTANT

    any_instant = type("AnyInstant", (before,), {"timezone": connection.timezone, "load": load})
    adapters.register_loader("timestamptz", any_instant)
    try:
        yield
    finally:
        adapters.register_loader("timestamptz", before)
