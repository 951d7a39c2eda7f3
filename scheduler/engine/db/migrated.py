"""Tables: whether the database is as this release needs it, and takes writes."""

import re
from uuid import uuid4

from django.db import DatabaseError, connections
from django.db.migrations.executor import MigrationExecutor

from scheduler.engine.db.transactions import without_waiting
from scheduler.models import Instance, Job

READ_ONLY = re.compile("read[ _-]?only", re.IGNORECASE)
"""What PostgreSQL, MariaDB, MySQL and SQLite all say of a write that they refuse for that reason."""

MUST_MIGRATE = "the tables of the scheduler are missing or of another release: run `python manage.py migrate`"


def awaits_migration(using: str) -> bool:
    """Return whether migrations of this app are still to be applied. For after an error: it takes its time.

    A database that does not answer is not known to await any.
    """
    connection = connections[using]
    if connection.connection is None:  # not asked again, since that may take long too
        return False
    try:
        executor = MigrationExecutor(connection)
        return bool(executor.migration_plan(executor.loader.graph.leaf_nodes(Job._meta.app_label)))
    except DatabaseError:
        return False


def why_read_only(using: str) -> str:
    """Return the words of a database that takes no writes; empty when it does, or another error says something else.

    It is asked by a write that changes no row; not within a transaction of the caller, which would keep the lock. It
    waits for no other writer: where there is one, the database takes writes.
    """
    if connections[using].in_atomic_block:
        return ""
    try:
        with without_waiting(using):
            Instance.objects.using(using).filter(pk=uuid4()).update(pid=0)
    except DatabaseError as error:
        return str(error) if READ_ONLY.search(str(error)) else ""
    return ""


COMMITS_NOTHING = "DATABASES[{alias!r}] has AUTOCOMMIT False, so nothing the scheduler writes is committed: remove it"


def commits(using: str) -> bool:
    """Return whether Django commits what is written outside of transactions, as it does unless told otherwise."""
    return bool(connections[using].settings_dict.get("AUTOCOMMIT", True))
