"""Whether the database is migrated, told by what it says when it is not."""

from django.db import DatabaseError

POSTGRESQL = ("42P01", "42703")
MYSQL = (1146, 1054)
SQLITE = ("no such table", "no such column")
"""An undefined table, and an undefined column, in the words of each database."""


def misses_tables(error: DatabaseError) -> bool:
    """Return whether a query failed for want of a table or column, and not because the database is busy or away."""
    cause = error.__cause__
    code = getattr(cause, "sqlstate", None) or getattr(cause, "pgcode", None)
    said = error.args[0] if error.args else ""
    return code in POSTGRESQL or said in MYSQL or str(said).startswith(SQLITE)
