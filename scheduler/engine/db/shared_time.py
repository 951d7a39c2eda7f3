"""What time it is by the database, by whose clock all instances on it go."""

from datetime import UTC, datetime
from typing import Any

from django.db import connections
from django.db.models import Aggregate, BigIntegerField, Expression, Field
from django.db.models.expressions import RawSQL

from scheduler.clock import SYSTEM_CLOCK

CLOCK_QUERIES = {
    "postgresql": "SELECT clock_timestamp() AT TIME ZONE 'UTC'",
    "mysql": "SELECT UTC_TIMESTAMP(6)",
}
"""Each answers with naive UTC, whatever the time zone of the session."""
MICROSECONDS = {
    "postgresql": "(EXTRACT(EPOCH FROM clock_timestamp()) * 1000000)::bigint",
    "mysql": "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))",
}
"""The same since 1970, as a number."""


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


class SharedMicroseconds(Aggregate):
    """The same as microseconds since 1970, beside a count of any rows or of none; null where there is no such clock."""

    function = "COUNT"
    template = "NULLIF(%(function)s(%(expressions)s), %(function)s(%(expressions)s))"
    output_field = BigIntegerField(null=True)

    def __init__(self) -> None:
        super().__init__("pk")

    def as_sql(self, compiler: Any, connection: Any, **context: Any) -> Any:  # type: ignore[override]
        """By the clock of the server."""
        if connection.vendor in CLOCK_QUERIES:
            context["template"] = f"(COUNT(%(expressions)s) * 0 + {MICROSECONDS[connection.vendor]})"
        return super().as_sql(compiler, connection, **context)


def beside_rows(using: str) -> Expression:
    """Return a column with what `CLOCK_QUERIES` answer, beside the rows of a query; null where there is none."""
    query = CLOCK_QUERIES.get(connections[using].vendor, "SELECT NULL")
    return RawSQL(f"({query})", (), output_field=Field())
