"""Transactions: those that write, the locks of rows within them, and views that want none."""

import os
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from datetime import datetime
from typing import Any, TypeVar

from django.core.exceptions import ValidationError
from django.db import (
    DatabaseError,
    DataError,
    IntegrityError,
    OperationalError,
    connections,
    models,
    transaction,
)

from scheduler.engine.db.fast_read import is_of_whole_rows, read_rows
from scheduler.engine.db.isolation import read_committed
from scheduler.engine.dependencies import new_anchor
from scheduler.engine.events import changes, write_events
from scheduler.models import Instance, Job
from scheduler.models.primary import locked

T = TypeVar("T")
V = TypeVar("V", bound=Callable[..., Any])

_one_writer, _next_writer = threading.RLock(), threading.RLock()
_heartbeat = threading.Lock()
"""Held by a heartbeat that waits to be written: the next writer lets it go first."""
LONGEST_HEARTBEAT = 5.0
"""Seconds that the next writer waits for it; no longer, whatever holds it up."""
LACKS_CHARACTERS = ((1366,), (3988,))
"""Codes of MySQL for a text that the character set of a column lacks."""
SIGNALLED = (1644,)
"""Code of MySQL for what a trigger says by SIGNAL."""
RAISED = "P0"
"""How the codes of PostgreSQL begin for what a trigger says by RAISE."""
ROWS_ALIKE, KINDS_ALIKE = 500, 5
"""Rows that one statement writes alike, and how many kinds of rows are looked through for that."""
TAKE_WRITE_LOCK = f"UPDATE {Instance._meta.db_table} SET pid = pid WHERE 0"


def _renew_locks() -> None:
    global _one_writer, _next_writer, _heartbeat
    _one_writer, _next_writer, _heartbeat = threading.RLock(), threading.RLock(), threading.Lock()


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_renew_locks)


def has_one_writer(using: str) -> bool:
    """Whether one process at a time may write (SQLite): the others wait, and some of them for long."""
    return not connections[using].features.has_select_for_update


@contextmanager
def write_transaction(using: str) -> Iterator[None]:
    """A transaction that writes from its first statement.

    Databases with row locks need no more than to see what others have committed. SQLite has one writer: a transaction
    that reads first and then writes fails at once with “database is locked” when another one wrote in between, whatever
    the timeout, so the first statement takes the write lock.
    """
    if not has_one_writer(using):
        with read_committed(using):
            yield
        return
    with _own_turn(using), _patiently(using, lambda: _begun_with_write_lock(using)):
        yield


def write_once(using: str, write: Callable[[], int], *, before_others: bool = False) -> bool:
    """Carry out one statement that writes, in a transaction of its own; returns whether it changed a row.

    `before_others`: on SQLite, as a heartbeat does, before all that wait for their turn in this process.
    """
    if not has_one_writer(using):
        return bool(write())
    with _own_turn(using, before_others=before_others):
        return bool(_patiently(using, write))


def _patiently(using: str, begin: Callable[[], T]) -> T:
    """Begin to write, and try again every millisecond while other processes write to SQLite's file.

    SQLite's own waiting sleeps ever longer, up to a tenth of a second. A process that writes without a pause leaves the
    file free for less than a millisecond at a time, so the longer another one has waited, the rarer are its chances.
    The connection's own timeout holds for how long that goes on, and for every other statement. Inside a caller's
    transaction SQLite decides whether waiting can help: it may hold what the other writer waits for.
    """
    connection = connections[using]
    if connection.in_atomic_block:
        return begin()
    connection.ensure_connection()
    session = connection.connection
    (patience,) = session.execute("PRAGMA busy_timeout").fetchone()
    tries_left = patience
    session.execute("PRAGMA busy_timeout = 1")
    try:
        while True:
            try:
                return begin()
            except OperationalError as error:
                tries_left -= 1
                if tries_left <= 0 or not _is_busy(error):
                    raise
    finally:
        session.execute(f"PRAGMA busy_timeout = {patience}")


@contextmanager
def without_waiting(using: str) -> Iterator[None]:
    """Have SQLite refuse a write at once while another connection writes: for what is better left than waited for."""
    if connections[using].vendor != "sqlite":
        yield
        return
    connections[using].ensure_connection()
    session = connections[using].connection
    (patience,) = session.execute("PRAGMA busy_timeout").fetchone()
    session.execute("PRAGMA busy_timeout = 0")
    try:
        yield
    finally:
        session.execute(f"PRAGMA busy_timeout = {patience}")


def _begun_with_write_lock(using: str) -> ExitStack:
    with ExitStack() as stack:
        stack.enter_context(transaction.atomic(using=using))
        stack.enter_context(connections[using].cursor()).execute(TAKE_WRITE_LOCK)
        return stack.pop_all()


def _is_busy(error: OperationalError) -> bool:
    """Whether another process has the lock. A snapshot that is too old to write from gets no younger."""
    return getattr(error.__cause__, "sqlite_errorname", "") in ("SQLITE_BUSY", "SQLITE_BUSY_RECOVERY")


def _own_turn(using: str, *, before_others: bool = False) -> AbstractContextManager[Any]:
    """Return what one statement that writes by itself waits for, and every transaction that writes on SQLite.

    There the threads of a process take turns, because SQLite's own waiting sleeps and can starve one of them. A
    heartbeat goes `before_others`: many may wait already, each for the writers of other processes, too. But no turns
    are taken inside a caller's transaction, which may hold SQLite's lock: the thread with the turn would wait for the
    lock, and this one for the turn.
    """
    if not has_one_writer(using) or connections[using].in_atomic_block:
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


def rewrite(
    jobs: models.QuerySet[Job],
    columns_of: Callable[[Job], dict[str, Any]],
    *,
    actor: str,
    at: datetime | None = None,
) -> int:
    """Lock each job, write what `columns_of` makes of it and the events that this means; return how many were written.

    Writing from an unlocked read would overwrite changes made in between. The events are of `at`, else of now.
    """
    with write_transaction(jobs.db):
        rows_locked = locked(jobs)
        read = read_rows(rows_locked) if is_of_whole_rows(rows_locked) else rows_locked
        found = [(job, columns) for job in read if (columns := columns_of(job))]
        events = [event for job, columns in found for event in changes(job, columns, at, actor=actor)]
        written = [(job.pk, columns | new_anchor(jobs.db, job, columns)) for job, columns in found]
        rows = Job.objects.using(jobs.db)  # `jobs` would repeat all its conditions for each row, which is locked by now
        count = sum(rows.filter(pk__in=pks).update(**columns) for pks, columns in _alike(written))
        write_events(jobs.db, events)
        return count


def _alike(written: Iterable[tuple[Any, dict[str, Any]]]) -> list[tuple[list[Any], dict[str, Any]]]:
    """Put rows together that are written alike, as those of a bulk action are: each statement writes some hundreds."""
    groups: list[tuple[list[Any], dict[str, Any]]] = []
    for pk, columns in written:
        near = next((keys for keys, same in groups[-KINDS_ALIKE:] if same == columns and len(keys) < ROWS_ALIKE), None)
        if near is None:
            groups.append(([pk], columns))
        else:
            near.append(pk)
    return groups


def is_refusal(error: Exception) -> bool:
    """Return whether a database, or what prepares values for it, will not keep such a row: not now, and not later.

    One that is away or busy is another matter.
    """
    if isinstance(error, OperationalError):
        return error.args[:1] in LACKS_CHARACTERS
    return isinstance(error, DataError | IntegrityError | ValidationError | TypeError | ValueError)


def is_of_statement(error: Exception) -> bool:
    """Return whether a database that is there did not carry out a statement, for a reason that is none of a value's.

    A trigger may have refused this row alone, or a table, a column or a right is missing, which is so for all rows.
    """
    if isinstance(error, OperationalError):
        return error.args[:1] == SIGNALLED
    return isinstance(error, DatabaseError) and not is_refusal(error)


def is_said_by_trigger(error: Exception) -> bool:
    """Return whether a trigger refuses a row, in words of its own."""
    cause = error.__cause__
    code = getattr(cause, "sqlstate", None) or getattr(cause, "pgcode", None) or ""  # of psycopg, and of psycopg2
    return is_of_statement(error) and (str(code).startswith(RAISED) or error.args[:1] == SIGNALLED)


def is_of_row(error: Exception) -> bool:
    """Return whether a database refuses this row, and takes others: by its rules, or in the words of a trigger."""
    return is_refusal(error) or is_said_by_trigger(error)


def may_be_of_one_row(error: Exception) -> bool:
    """Return whether other rows may be written although this one was not: they are to be tried one by one."""
    return is_refusal(error) or is_of_statement(error)


def is_inside_a_transaction(using: str) -> bool:
    """Whether the caller may still roll back what is written now; the transaction around a test is none of these."""
    return any(not getattr(block, "_from_testcase", False) for block in connections[using].atomic_blocks)
