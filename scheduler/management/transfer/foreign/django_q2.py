"""django-q2: its table of schedules, also that of django-q."""

import ast
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from typing import Any

from django.conf import settings

from scheduler.engine.base import Engine
from scheduler.engine.db.shared_time import shared_now
from scheduler.exceptions import InvalidOption
from scheduler.management.transfer.entry import Entry
from scheduler.management.transfer.foreign.names import job_name
from scheduler.management.transfer.foreign.q2_schedule import schedule_of
from scheduler.management.transfer.foreign.tables import UNREADABLE, Row, Tables
from scheduler.management.transfer.sources import Asked, Found
from scheduler.safetext import shown, told
from scheduler.schedules import Schedule

TABLE = "django_q_schedule"
CLOCKS = (
    "On days when clocks change, slots follow the rule of cronie: a fixed time runs once. The crons of django-q2 may "
    "run twice or an hour off then."
)
LONGEST = 100_000
"""Characters of arguments that are read."""
ONCE = "O"


def read(asked: Asked) -> Found:
    """Read the table; raises InvalidOption where it is not there."""
    tables = Tables(asked.database)
    now = shared_now(Engine().using)
    entries = [_entry(row, tables, now) for row in tables.rows(TABLE)]
    return entries, [CLOCKS] if any(one.schedule and one.schedule.is_calendar for one in entries) else []


def _entry(row: Row, tables: Tables, now: datetime) -> Entry:
    func = str(row["func"])
    name, notes = job_name(str(row.get("name") or f"{func} {row['id']}"))
    found = Entry(place=f"row {row['id']}", name=name, task=func, notes=tuple(notes))
    try:
        next_run = tables.instant(row.get("next_run"))
        if over := _over(row, next_run, now):
            return replace(found, over=over)
        schedule = schedule_of(row, next_run, settings.TIME_ZONE)
        kwargs, lost = _kwargs(str(row.get("kwargs") or ""))
        args, limits = _args(str(row.get("args") or "")), _limits(row, schedule, next_run, now)
    except UNREADABLE as error:
        return replace(found, refused=told(error))
    repeats = [f"repeats is max_runs={limits['max_runs']}"] if "max_runs" in limits else []
    notes += [*lost, *repeats, *_lost(row)]
    return replace(found, schedule=schedule, said={"kwargs": kwargs, **limits}, args=args, notes=tuple(notes))


def _limits(row: Row, schedule: Schedule, next_run: datetime | None, now: datetime) -> dict[str, Any]:
    """Return the options that bound a schedule: a next run that lies ahead of its slots, and its repeats."""
    if row["schedule_type"] == ONCE:
        return {}
    first = schedule.next_after(now)
    begin = next_run.replace(microsecond=0) if next_run else None
    limits: dict[str, Any] = {"starts_at": begin} if begin and first and first < begin else {}
    repeats = int(row.get("repeats") or 0)
    return limits | ({"max_runs": repeats} if repeats > 0 else {})


def _over(row: Row, next_run: datetime | None, now: datetime) -> str:
    """Say why nothing is left of a schedule; empty where it goes on."""
    if row.get("repeats") == 0:
        return "It has had all its repeats."
    if row["schedule_type"] == ONCE and (next_run is None or next_run <= now):
        return "Its only instant has passed, and what has passed is not run."
    return ""


def _lost(row: Row) -> Iterator[str]:
    """Yield what is not carried over."""
    for name, why in (("hook", "receive the signal run_finished"), ("cluster", "every process runs every job")):
        if row.get(name):
            yield f"{name} ({shown(row[name])}) is not carried over: {why}"
    if argument := row.get("intended_date_kwarg"):
        yield f"intended_date_kwarg ({shown(argument)}) is not carried over: the context of a run has scheduled_for"


def _args(text: str) -> tuple[Any, ...]:
    """Return arguments by position, as django-q2 reads them: a Python literal, one or several."""
    if not text.strip():
        return ()
    found = _literal(text, "args")
    return found if isinstance(found, tuple) else (found,)


def _kwargs(text: str) -> tuple[dict[str, Any], list[str]]:
    """Return arguments by name, and what is lost of them: a literal dict, or `x=1, y='a'`."""
    if not text.strip():
        return {}, []
    found = _literal(text, "kwargs") if text.lstrip().startswith("{") else _called_with(text)
    if not isinstance(found, dict):
        raise InvalidOption("kwargs is no dict.")
    options = found.pop("q_options", None)
    return found, ["q_options is not carried over: give options to the job"] if options else []


def _called_with(text: str) -> dict[str, Any]:
    try:
        body = ast.parse(f"f({text[:LONGEST]})", mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise InvalidOption("kwargs cannot be read; django-q2 has run it without any.") from None
    if not isinstance(body, ast.Call) or body.args or not isinstance(body.func, ast.Name):
        raise InvalidOption("kwargs cannot be read; django-q2 has run it without any.")
    return {str(one.arg): _literal(one.value, "kwargs") for one in body.keywords}


def _literal(text: str | ast.expr, name: str) -> Any:
    """Return the value of a Python literal; nothing of it is called."""
    if isinstance(text, str) and len(text) > LONGEST:
        raise InvalidOption(f"{name} has {len(text)} characters; at most {LONGEST} are read.")
    try:
        return ast.literal_eval(text)
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError):
        raise InvalidOption(f"{name} is no Python literal.") from None
