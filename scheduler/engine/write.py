"""Transactions: those that write, the locks of rows within them, and views that want none."""

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, TypeVar

from django.core.exceptions import ValidationError
from django.db import DataError, IntegrityError, OperationalError, connections, models, transaction

from scheduler.engine.dependencies import new_anchor
from scheduler.engine.isolation import read_committed
from scheduler.models import Instance, Job
from scheduler.models.primary import locked

V = TypeVar("V", bound=Callable[..., Any])

_one_writer, _next_writer = threading.RLock(), threading.RLock()
_heartbeat = threading.Lock()
"""Held by a heartbeat from when it wants to be written: whoever is the next writer lets it go first."""
LONGEST_HEARTBEAT = 5.0
"""Seconds that the next writer waits for it; no longer, whatever holds it up."""
LACKS_CHARACTERS = ((1366,), (3988,))
"""Codes of MySQL for a text that the character set of a column lacks."""
TAKE_WRITE_LOCK = f"UPDATE {Instance._meta.db_table} SET pid = pid WHERE 0"


def _renew_locks() -> None:
    global _one_writer, _next_writer, _heartbeat
    _one_writer, _next_writer, _heartbeat = threading.RLock(), threading.RLock(), threading.Lock()


os.register_at_fork(after_in_child=_renew_locks)


@contextmanager
def write_transaction(using: str) -> Iterator[None]:
    """A transaction that writes from its first statement.

    Databases with row locks need no more than to see what others have committed. SQLite has one writer: a transaction
    that reads first and then writes fails at once with “database is locked” when another one wrote in between, whatever
    the timeout, so the first statement takes the write lock.
    """
    if connections[using].features.has_select_for_update:
        with read_committed(using):
            yield
        return
    with own_turn(using), transaction.atomic(using=using):
        with connections[using].cursor() as cursor:
            cursor.execute(TAKE_WRITE_LOCK)
        yield


def own_turn(using: str, *, before_others: bool = False) -> AbstractContextManager[Any]:
    """Return what one statement that writes by itself waits for, and every transaction that writes on SQLite.

    There the threads of a process take turns, because SQLite's own waiting sleeps and can starve one of them. A
    heartbeat goes `before_others`: many may wait already, each for the writers of other processes, too. But no turns
    are taken inside a transaction of somebody else's, who may hold SQLite's lock: whoever has the turn would wait for
    it, and we for the turn.
    """
    connection = connections[using]
    if connection.features.has_select_for_update or connection.in_atomic_block:
        return nullcontext()
    return _before_others() if before_others else _in_line()


@contextmanager
def _before_others() -> Iterator[None]:
    with _heartbeat, _one_writer:
        yield


@contextmanager
def _in_line() -> Iterator[None]:
    with _next_writer:
        if _heartbeat.acquire(timeout=LONGEST_HEARTBEAT):
            _heartbeat.release()
        with _one_writer:
            yield


def outside_transactions(view: V) -> V:
    """Mark a view that answers also when a database does not, or a statement fails.

    With ATOMIC_REQUESTS Django would open a transaction before it, on each database that asks for one: there is no
    answer when that fails, and after a failed statement PostgreSQL takes no other one.
    """
    for alias in connections:
        transaction.non_atomic_requests(using=alias)(view)
    return view


def rewrite(jobs: models.QuerySet[Job], columns_of: Callable[[Job], dict[str, Any]]) -> int:
    """Write what `columns_of` makes of each job while nobody else can change it; returns how many were written.

    Who reads, thinks and then writes would undo what others have written meanwhile.
    """
    with write_transaction(jobs.db):
        found = [(job, columns_of(job)) for job in locked(jobs)]
        changes = [(job.pk, columns | new_anchor(jobs.db, job, columns)) for job, columns in found if columns]
        return sum(jobs.filter(pk=pk).update(**columns) for pk, columns in changes)


def is_refusal(error: Exception) -> bool:
    """Return whether a database, or what prepares values for it, will not keep such a row: not now, and not later.

    One that is away or busy is another matter.
    """
    if isinstance(error, OperationalError):
        return error.args[:1] in LACKS_CHARACTERS
    return isinstance(error, DataError | IntegrityError | ValidationError | TypeError | ValueError)


def lock_in_order(rows: models.QuerySet[Any]) -> None:
    """Lock the rows by their keys, as claims and ends do, before an update of many.

    An update locks them as they lie, and two orders can block each other.
    """
    if connections[rows.db].features.has_select_for_update:
        list(locked(rows.order_by("pk")).values_list("pk", flat=True))
