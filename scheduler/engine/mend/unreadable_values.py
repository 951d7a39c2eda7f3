"""Spoiled: values that a column takes and that cannot be read. They are mended before a start, and once a lease.

SQLite keeps values of any type. Reading goes on without them, but in its conditions the database compares what stands
there: text is due never, and no version is equal to it. PostgreSQL keeps instants that are infinite, or of years that
no `datetime` has: reading such a row raises an error for all rows.
"""

import logging
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any

from django.db import IntegrityError, connections, transaction

from scheduler.engine.base import Engine
from scheduler.engine.db.transactions import write_transaction
from scheduler.engine.events import SCHEDULER, event, write_events
from scheduler.engine.mend.telling import tell_mended
from scheduler.models import Activity, EventKind, Group, Instance, Job, RunLog, distrust
from scheduler.models.fields import (
    LONG_AGO,
    Flag,
    IdentityField,
    InstantField,
    Number,
    PolicyField,
    ScheduleField,
    Text,
)

logger = logging.getLogger("scheduler")

IS_NO_NUMBER = "typeof({name}) NOT IN ('integer', 'null')"
IS_NO_INSTANT = "({name} IS NOT NULL AND (typeof({name}) <> 'text' OR datetime({name}) IS NULL))"
IS_NO_IDENTITY = (
    "({name} IS NOT NULL AND (typeof({name}) <> 'text' OR length({name}) <> 32 OR {name} GLOB '*[^0-9a-f]*'))"
)
IS_NO_FLAG = "{name} NOT IN (0, 1)"
IS_NO_TEXT = "({name} IS NOT NULL AND NOT scheduler_is_text(typeof({name}), CAST({name} AS BLOB)))"
IS_BEYOND = "({name} > '9999-12-31 23:59:59.999999+00' OR {name} < '0001-01-01 00:00:00+00')"

TEXTS = (Text, ScheduleField, PolicyField)
UNREADABLE = "a column of it held a value that cannot be read"
CHECKS: dict[str, dict[Any, str]] = {
    "sqlite": {
        Number: IS_NO_NUMBER,
        InstantField: IS_NO_INSTANT,
        IdentityField: IS_NO_IDENTITY,
    },
    "postgresql": {InstantField: IS_BEYOND},
}
"""How a spoiled value is seen, by vendor and by kind of column. MySQL checks what it takes."""

WHERE_MET: dict[Any, str] = {Flag: IS_NO_FLAG, TEXTS: IS_NO_TEXT}
"""Further ones on SQLite, before a start and once one was met: a text takes a call of Python, and reads well anyway."""

OPEN_RUNS = "due_at IS NOT NULL AND "
"""The ledger is long: once a lease, only rows that are found by the index are looked at."""
ONE_EACH = "%s + id * interval '1 microsecond'"
"""A slot that no other run of the job has."""


def mend_spoiled(engine: Engine, now: datetime, *, everywhere: bool = False) -> list[str]:
    """Write what spoiled values read as, and let attempts be due whose instant is spoiled; returns the jobs.

    An instance with a spoiled id goes: it cannot be renewed. `everywhere` looks at ended runs and at users, too, where
    a value of theirs costs other rows.
    """
    vendor = connections[engine.using].vendor
    if vendor not in CHECKS:
        return []
    if vendor == "sqlite" and (everywhere or engine.using in distrust.met):
        distrust.met.add(engine.using)
        connections[engine.using].ensure_connection()
        connections[engine.using].connection.create_function("scheduler_is_text", 2, _is_text)
    jobs = Job.objects.using(engine.using).filter(pk__in=_mended(engine, Job, now))
    runs = RunLog.objects.using(engine.using).filter(pk__in=_mended_runs(engine, now, everywhere=everywhere))
    names = sorted({*jobs.values_list("name", flat=True), *runs.values_list("job__name", flat=True)})
    tell_mended(names, UNREADABLE)
    _mend_others(engine, now, users=everywhere and vendor == "postgresql")
    distrust.met.discard(engine.using)
    return names


def _mend_others(engine: Engine, now: datetime, *, users: bool) -> None:
    models: list[Any] = [Group, Instance, *([Activity] if users else [])]
    for model in models:
        if ids := _mended(engine, model, now):
            text = "%s %r is mended: a column of it held a value that cannot be read"
            rows = ids[0] if len(ids) == 1 else ids
            logger.warning(text, model.__name__, rows, extra={"action": "row_mended"})


def _is_text(kind: str, raw: bytes) -> bool:
    """Whether SQLite keeps a text, and one in UTF-8."""
    try:
        return kind == "text" and bool(raw.decode() or True)
    except UnicodeDecodeError:
        return False


def _mended_runs(engine: Engine, now: datetime, *, everywhere: bool) -> list[Any]:
    """On SQLite only what conditions compare is mended in runs: the rest reads as nothing."""
    if connections[engine.using].vendor != "sqlite":
        return _mended(engine, RunLog, now, among="" if everywhere else OPEN_RUNS)
    return _mended(engine, RunLog, now, only=["due_at", "instance_id", "status", "trigger"], among=OPEN_RUNS)


def _mended(engine: Engine, model: Any, now: datetime, *, only: Iterable[str] = (), among: str = "") -> list[Any]:
    """Mend the rows of a model; returns their keys as they stand in the database."""
    connection = connections[engine.using]
    table, key = (connection.ops.quote_name(name) for name in (model._meta.db_table, model._meta.pk.column))
    checks = [one for one in _checked(model, connection) if not only or one[0].name in only]
    condition = among + "(" + " OR ".join(check for _, check in checks) + ")"
    found = _keys(connection, f"SELECT {key} FROM {table} WHERE {condition}")
    if not found:
        return []
    with write_transaction(engine.using):
        for field, check in checks:
            _mend_column(connection, field, f"{among}{check}", now)
        if model is Job:
            jobs = Job.objects.using(engine.using).filter(pk__in=found).only("name")
            told = [event(job, EventKind.PLAN_MENDED, now, actor=SCHEDULER, reason=UNREADABLE) for job in jobs]
            write_events(engine.using, told)
    return found


def _mend_column(connection: Any, field: Any, condition: str, now: datetime) -> None:
    """Write what is meant where a column is spoiled; a row whose key is spoiled goes."""
    table, name = (connection.ops.quote_name(one) for one in (field.model._meta.db_table, field.column))
    if isinstance(field, TEXTS):
        _write_texts(connection, field, f"{table} WHERE {condition}")
        return
    with connection.cursor() as cursor:
        if field.primary_key:
            cursor.execute(f"DELETE FROM {table} WHERE {condition}")
            return
        to = ONE_EACH if field.name == "scheduled_for" else "%s"
        value = field.get_db_prep_save(_meant(field, now), connection)
        cursor.execute(f"UPDATE {table} SET {name} = {to} WHERE {condition}", [value])


def _keys(connection: Any, statement: str) -> list[Any]:
    def read() -> list[Any]:
        with connection.cursor() as cursor:
            cursor.execute(statement)
            return [distrust.decoded(pk) for (pk,) in cursor.fetchall()]

    return distrust.read_with_distrust(connection.alias, read)


def _write_texts(connection: Any, field: Any, rows: str) -> None:
    """Write each text of a column as it reads; a name that another row has by then gets the number of its row."""
    table, column = (connection.ops.quote_name(name) for name in (field.model._meta.db_table, field.column))
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT rowid, CAST({column} AS BLOB) FROM {rows}")
        for row, raw in cursor.fetchall():
            text = distrust.decoded(raw)
            write = f"UPDATE {table} SET {column} = %s WHERE rowid = %s"
            try:
                with transaction.atomic(using=connection.alias):
                    cursor.execute(write, [text, row])
            except IntegrityError:
                cursor.execute(write, [f"{text} #{row}", row])


def _checked(model: Any, connection: Any) -> Iterator[tuple[Any, str]]:
    """Yield each column that can be spoiled, and how that is seen."""
    checks = CHECKS[connection.vendor]
    if connection.vendor == "sqlite" and connection.alias in distrust.met:
        checks = checks | WHERE_MET
    for field in model._meta.concrete_fields:
        for kind, check in checks.items():
            if isinstance(field, kind):
                yield field, check.format(name=connection.ops.quote_name(field.column))


def _meant(field: Any, now: datetime) -> Any:
    """Return what is written for a spoiled value: what it reads as, but for instants that count from now.

    What lives would die of a heartbeat of long ago, and an attempt is due.
    """
    if isinstance(field, Number | Flag):
        return field.get_default() or 0
    if isinstance(field, IdentityField):
        return None
    if field.name in ("due_at", "heartbeat_at"):
        return now
    return LONG_AGO if field.stands or not field.null else None
