"""Channel: by which processes on one PostgreSQL wake each other. It is no authority: who hears nothing polls."""

from contextlib import suppress

from django.db import Error as DatabaseError
from django.db import connections, router

from scheduler.conf import conf
from scheduler.models import Job
from scheduler.runtime import current

JOBS, TASKS = "jobs", "tasks"
"""What is told: definitions or plans have changed; tasks were enqueued."""


def is_possible(using: str) -> bool:
    """Return whether this process may listen: on PostgreSQL with psycopg 3, unless SCHEDULER_LISTEN says no."""
    if connections[using].vendor != "postgresql" or not conf.LISTEN:
        return False
    from django.db.backends.postgresql.psycopg_any import is_psycopg3

    return bool(is_psycopg3)


def name() -> str:
    """Return the name of the channel, which is one for each database; that of the table tells apps apart."""
    return str(Job._meta.db_table)


def tell_of_jobs(**_: object) -> None:
    """Wake the other processes: definitions or plans have changed, and this is committed."""
    _tell(JOBS)


def tell_of_tasks(**_: object) -> None:
    """Wake the other processes: tasks wait that this one does not take just now."""
    runner = current.current()
    if runner is None or not runner.engine.takes.are_all or not runner.pool.wants_tasks():
        _tell(TASKS)


def _tell(what: str) -> None:
    """In a transaction of its own: PostgreSQL lets transactions that notify commit one after the other.

    It does not wait for the disk, unless the caller commits by hand, whose transaction it is part of: a wake-up that a
    crash loses is none, and the next look finds what it told of.
    """
    using = router.db_for_write(Job)
    if not is_possible(using):
        return
    runner = current.current()
    by = "" if runner is None else str(runner.engine.instance_id)
    with suppress(DatabaseError), connections[using].cursor() as cursor:
        quick = "set_config('synchronous_commit', 'off', true), " if connections[using].get_autocommit() else ""
        cursor.execute(f"SELECT {quick}pg_notify(%s, %s)", [name(), f"{what} {by}"])
