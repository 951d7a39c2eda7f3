"""Tables: whether the database is as this release needs it."""

from django.db import DatabaseError, connections
from django.db.migrations.executor import MigrationExecutor

from scheduler.models import Job

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
