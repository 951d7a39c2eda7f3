"""What time it is by the database, by whose clock all instances on it go."""

from datetime import UTC, datetime

from django.db import connections

from scheduler.clock import SYSTEM_CLOCK

CLOCK_QUERIES = {
    "postgresql": "SELECT clock_timestamp() AT TIME ZONE 'UTC'",
    "mysql": "SELECT UTC_TIMESTAMP(6)",
}
"""Each answers with naive UTC, whatever the time zone of the session."""


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
    """Return the time for what somebody asks for now, on a host whose own clock may be wrong."""
    return database_time(using) or SYSTEM_CLOCK.now()
