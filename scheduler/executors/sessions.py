"""Sessions: what a run sets on a database session, a role or a tenant, ends with the run.

A worker keeps its connections from run to run (CONN_MAX_AGE). Statements that leave something on the session are
noticed as they pass; such a session is closed behind the run, and all others are kept. Asking the server instead would
cost every run a round trip.
"""

import re
from contextlib import suppress
from typing import Any

from django.db import Error as DatabaseError
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.signals import connection_created

from scheduler.context import current_run
from scheduler.signals import connection_released

VENDORS = ("postgresql", "mysql")
"""SQLite has no session to speak of, and a database in memory lives as long as its connection."""
SPACE = r"(?>\s|/\*.*?\*/|--[^\n]*\n)*+"
"""Blanks and comments: Django, and tools that trace statements, put comments before them."""
COMMANDS = re.compile(
    rf"{SPACE}(?:(?:set|reset|discard|use|listen|unlisten|do|load)\b"
    rf"(?!\s+(?:local|transaction|constraints)\b)|create\s+(?:local\s+|global\s+)?temp|lock\s+tables?\b)",
    re.IGNORECASE | re.DOTALL,
)
CALLS = ("set_config", "advisory_lock", "get_lock")
"""What a text must contain before it is worth a closer look: most statements contain none of them."""
CALLED = re.compile(r"\b(?:set_config|pg_(?:try_)?advisory_lock\w*|get_lock)\s*\(", re.IGNORECASE)


class Watch:
    """Wraps the statements of a connection and notes whether one may outlast its transaction."""

    def __init__(self) -> None:
        self.changed = False

    def __call__(self, execute: Any, sql: Any, params: Any, many: bool, context: Any) -> Any:
        if not self.changed and _changes_session(sql):
            self.changed = True
        return execute(sql, params, many, context)


def watch(connection: BaseDatabaseWrapper) -> None:
    """Watch a connection from now on.

    First in the list: Django's `execute_wrapper()` takes the last one away at its end, which must be its own.
    """
    if connection.vendor in VENDORS and _watch_of(connection) is None:
        connection.execute_wrappers.insert(0, Watch())


def keep_from_pool(connection: BaseDatabaseWrapper) -> None:
    """Close a changed session that came from a pool, before Django gives it back: the pool then drops it."""
    watching = _watch_of(connection)
    if watching is not None and watching.changed and connection.settings_dict["OPTIONS"].get("pool"):
        with suppress(Exception):  # the task may have closed it
            connection.connection.close()


def release(connection: BaseDatabaseWrapper, *, is_callers: bool = False, tenant: Any = None) -> None:
    """Leave a connection to the next run of its thread without what this one has set.

    `is_callers`: the connection belongs to who called the run, and stays open. `tenant`: of django-tenants, what the
    caller had set before the run.
    """
    watching = _watch_of(connection)
    if watching is not None and watching.changed and not is_callers:
        watching.changed = False
        with suppress(DatabaseError):
            connection.close()
    forget_tenant = getattr(connection, "set_schema_to_public", None)  # django-tenants keeps the tenant in Python
    if tenant is not None:
        connection.set_tenant(tenant)  # type: ignore[attr-defined]
    elif forget_tenant is not None:
        forget_tenant()
    connection_released.send_robust(type(connection), connection=connection)


def _watch_of(connection: BaseDatabaseWrapper) -> Watch | None:
    return next((one for one in connection.execute_wrappers if isinstance(one, Watch)), None)


def _changes_session(sql: Any) -> bool:
    if not isinstance(sql, str):
        return True  # composed by psycopg.sql: rare, and no text yet
    if COMMANDS.match(sql):
        return True
    lowered = sql.lower()
    if any(call in lowered for call in CALLS) and CALLED.search(sql):
        return True
    return ";" in sql and any(COMMANDS.match(part) for part in sql.split(";")[1:])


def _on_connect(connection: BaseDatabaseWrapper, **_: Any) -> None:
    """Watch the connections that a run opens. What Django itself sets on a new session is no change of it."""
    if current_run() is None:
        return
    watch(connection)
    if (watching := _watch_of(connection)) is not None:
        watching.changed = False


connection_created.connect(_on_connect, dispatch_uid="scheduler.sessions")
