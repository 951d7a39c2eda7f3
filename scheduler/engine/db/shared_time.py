"""What time it is by the database, by whose clock all instances on it go."""

from datetime import UTC, datetime

from django.db import connections
from django.db.models import Expression, Field
from django.db.models.expressions import RawSQL

from scheduler.clock import SYSTEM_CLOCK

CLOCK_QUERIES = {
    "postgresql": "SELECT clock_timestamp() AT TIME ZONE 'UTC'",
    "mysql": "SELECT UTC_TIMESTAMP(6)",
}
"""Each answers with naive UTC, whatever the time zone of the session."""


def connect(using: str) -> None:
    """Open the connection, so that the next round trip contains nothing else."""
    connections[using].ensure_connection()


def database_time(using: str) -> datetime | None:
    """Ask a database server for its time (UTC); None where the clock of the host is the only one (SQLite)."""
    query = CLOCK_QUERIES.get(connections[using].vendor)
    if query is None:
        return None
    with connections[using].cursor() as cursor:
        cursor.execute(query)
        answer: datetime = cursor.fetchone()[0]
    return answer.replace(tzinfo=UTC)


def shared_now(using: str) -> datetime:
    """Return the current time for requests by people, on a host whose own clock may be wrong."""
    return database_time(using) or SYSTEM_CLOCK.now()


def beside_rows(using: str) -> Expression:
    """Return a column with what `CLOCK_QUERIES` answer, beside the rows of a query; null where there is none."""
    query = CLOCK_QUERIES.get(connections[using].vendor, "SELECT NULL")
    return RawSQL(f"({query})", (), output_field=Field())
