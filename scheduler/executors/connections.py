"""Database connections around a task: healthy ones before it, none left in a harmful state after it."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from django.db import Error as DatabaseError
from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper

from scheduler.context import RunContext

logger = logging.getLogger("scheduler")


@contextmanager
def own_connections(context: RunContext) -> Iterator[None]:
    """Drop old connections before and after a task, and roll back what it left open.

    Connections that are inside a transaction already belong to the caller (a test, say) and are left alone.
    """
    callers = set()
    for connection in connections.all(initialized_only=True):
        if connection.in_atomic_block:
            callers.add(connection.alias)
        else:
            connection.close_if_unusable_or_obsolete()
    try:
        yield
    finally:
        for connection in connections.all(initialized_only=True):
            if connection.alias not in callers:
                with suppress(DatabaseError):  # a driver may refuse to close what a task has closed behind our back
                    _tidy(connection, context)


def _tidy(connection: BaseDatabaseWrapper, context: RunContext) -> None:
    if connection.in_atomic_block or (connection.connection is not None and not connection.autocommit):
        logger.warning(
            "Run %s of %s left a transaction open on %r; it was rolled back",
            context.run_id,
            context.job,
            connection.alias,
            extra={"action": "transaction_left_open", "job": context.job, "run": context.run_id},
        )
        connection.in_atomic_block = False  # closing inside a block would leave the wrapper unusable
        connection.close()
    elif connection.connection is not None:
        connection.close_if_unusable_or_obsolete()
