"""Database connections of tasks: healthy ones before each, none left in a harmful state after it, none at the end."""

import logging
from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from contextlib import contextmanager, suppress
from typing import Any

from asgiref.sync import SyncToAsync
from django.db import Error as DatabaseError
from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper

from scheduler.context import RunContext
from scheduler.executors.sessions import keep_from_pool, release, watch

logger = logging.getLogger("scheduler")

A_MOMENT = 0.2
"""Seconds that connections take to close at the very most, unless what uses them does not end."""

_async_work_was_done = False


@contextmanager
def own_connections(context: RunContext, *, as_guest: bool = False) -> Iterator[None]:
    """Drop old connections before and after a task, roll back what it left open, and undo what it set on a session.

    Connections that are inside a transaction already belong to the caller (a test, say). They get a savepoint, so that
    a statement that fails does not spoil that transaction. `as_guest`: so do the others, which are not dropped for
    their age, and keep the tenant they had.
    """
    callers: dict[str, str | None] = {}
    tenants: dict[str, Any] = {}
    for connection in connections.all(initialized_only=True):
        if connection.in_atomic_block:
            callers[connection.alias] = None if connection.needs_rollback else connection.savepoint()
        else:
            if not as_guest:
                connection.close_if_unusable_or_obsolete()
            else:
                tenants[connection.alias] = getattr(connection, "tenant", None)
            watch(connection)
    try:
        yield
    finally:
        for connection in connections.all(initialized_only=True):
            with suppress(DatabaseError):  # a driver may refuse to close what a task has closed behind our back
                if connection.alias in callers:
                    _end_savepoint(connection, callers[connection.alias])
                else:
                    if not as_guest:
                        keep_from_pool(connection)
                    _tidy(connection, context, as_guest=as_guest)
            if connection.alias not in callers:
                with suppress(Exception):  # a package's own code: whatever is wrong with it, the run has ended
                    release(connection, is_callers=connection.alias in tenants, tenant=tenants.get(connection.alias))


def drop_connections() -> None:
    """Close the connections of this thread, except those inside a transaction, which belong to a caller."""
    for connection in connections.all(initialized_only=True):
        if not connection.in_atomic_block:
            with suppress(DatabaseError):  # it may be closed already
                connection.close()


def give_back_pooled() -> None:
    """Close those of this thread that come from a pool, which gives them back: the whole process has only so many."""
    for connection in connections.all(initialized_only=True):
        if connection.settings_dict["OPTIONS"].get("pool") and not connection.in_atomic_block:
            with suppress(DatabaseError):  # the pool may be closed already
                connection.close()


def drop_old_of_async_work() -> "Future[object] | None":
    """Drop old connections of the sync parts of async tasks, after those parts that wait already, before all others.

    Who waits for it waits for those parts. None when nothing can be done any more, since the interpreter shuts down.
    """
    global _async_work_was_done
    _async_work_was_done = True
    return _in_async_thread(_drop_old)


def drop_all_of_async_work() -> None:
    """At the end of the scheduler, drop those too that may be kept; waits no longer than a moment for it."""
    if _async_work_was_done and (dropped := _in_async_thread(drop_connections)) is not None:
        wait([dropped], A_MOMENT)


def _in_async_thread(work: Callable[[], object]) -> "Future[object] | None":
    """Have something done in the one thread in which asgiref does sync parts, and so Django's async ORM works.

    It does one thing after the other, in the order in which they come.
    """
    with suppress(RuntimeError):
        return SyncToAsync.single_thread_executor.submit(work)
    return None


def _drop_old() -> None:
    for connection in connections.all(initialized_only=True):
        with suppress(DatabaseError):  # the others are to be dropped all the same
            connection.close_if_unusable_or_obsolete()


def _end_savepoint(connection: BaseDatabaseWrapper, savepoint: str | None) -> None:
    """Keep what a task has written in the caller's transaction, unless a statement of it has spoilt that."""
    if savepoint is None or not connection.in_atomic_block:
        return
    if connection.needs_rollback or not _answers(connection):
        connection.needs_rollback = False
        connection.savepoint_rollback(savepoint)
    connection.savepoint_commit(savepoint)


def _answers(connection: BaseDatabaseWrapper) -> bool:
    """Whether a transaction goes on: PostgreSQL takes no statement after one that failed."""
    if connection.vendor != "postgresql":
        return True
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except DatabaseError:
        return False
    return True


def _tidy(connection: BaseDatabaseWrapper, context: RunContext, *, as_guest: bool = False) -> None:
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
    elif connection.connection is not None and not as_guest:
        connection.close_if_unusable_or_obsolete()
