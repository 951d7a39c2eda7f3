"""Isolation: what our transactions see of those of others, whatever the project has asked for its own."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper

LEVEL = "read committed"
ASK_FOR_IT = f"SET TRANSACTION ISOLATION LEVEL {LEVEL.upper()}"


@contextmanager
def read_committed(using: str) -> Iterator[None]:
    """An atomic block each of whose statements sees what others have committed before it.

    A snapshot of the transaction's first statement, as REPEATABLE READ takes it, is older than the locks that are taken
    later: living runs counted under the lock of their group would be those of a moment ago. Inside a caller's
    transaction, its level applies.
    """
    connection = connections[using]
    if connection.in_atomic_block:
        with transaction.atomic(using=using):
            yield
        return
    if connection.vendor == "mysql" and _differs_on_mysql(connection):
        _ask(connection)  # for the transaction that is next
    with transaction.atomic(using=using):
        if connection.vendor == "postgresql" and _differs_on_postgresql(connection):
            _ask(connection)
        yield


def _differs_on_mysql(connection: BaseDatabaseWrapper) -> bool:
    """Whether Django has not set our level for the session, as it does unless told otherwise."""
    connection.ensure_connection()
    return bool(connection.isolation_level != LEVEL)  # type: ignore[attr-defined]


def _differs_on_postgresql(connection: BaseDatabaseWrapper) -> bool:
    """Whether the level is another one: of the connection, the role, the database or the server. Asked once each."""
    session, asked = connection.connection, vars(connection).get("_scheduler_isolation")
    if asked is None or asked[0] is not session:
        with connection.cursor() as cursor:
            cursor.execute("SHOW transaction_isolation")
            asked = connection._scheduler_isolation = session, cursor.fetchone()[0] != LEVEL  # type: ignore[attr-defined]
    return bool(asked[1])


def _ask(connection: BaseDatabaseWrapper) -> None:
    with connection.cursor() as cursor:
        cursor.execute(ASK_FOR_IT)
