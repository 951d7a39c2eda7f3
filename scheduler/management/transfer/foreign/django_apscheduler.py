"""django-apscheduler: its table, whose jobs are pickles. They are read only where that is asked for."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from typing import Any

from scheduler.engine.base import Engine
from scheduler.engine.db.shared_time import shared_now
from scheduler.management.transfer.entry import Entry, Pause
from scheduler.management.transfer.foreign.apscheduler_trigger import Trigger, translated
from scheduler.management.transfer.foreign.names import job_name
from scheduler.management.transfer.foreign.restricted_pickle import state_of
from scheduler.management.transfer.foreign.tables import UNREADABLE, Row, Tables
from scheduler.management.transfer.sources import Asked, Found
from scheduler.safetext import shown, told

TABLE = "django_apscheduler_djangojob"
CLOCKS = (
    "On days when clocks change, slots follow the rule of cronie: a fixed time runs once. APScheduler may run it twice "
    "or an hour off then."
)
USUAL_GRACE = 1
"""Seconds of APScheduler's default, which people seldom chose."""


def read(asked: Asked) -> Found:
    """Read the table; raises InvalidOption where it is not there."""
    tables = Tables(asked.database)
    now = shared_now(Engine().using)
    entries = [_entry(row, tables, now, unpickle=asked.unpickle) for row in tables.rows(TABLE)]
    return entries, [CLOCKS] if any(one.schedule and one.schedule.is_calendar for one in entries) else []


def _entry(row: Row, tables: Tables, now: datetime, *, unpickle: bool) -> Entry:
    key = str(row["id"])
    name, notes = job_name(key)
    found = Entry(place=f"job {shown(key)}", name=name, notes=tuple(notes))
    try:
        next_run = tables.instant(row.get("next_run_time"))
        if not unpickle:
            when = f"its next run is {next_run.isoformat()}" if next_run else "it is paused"
            return replace(
                found, refused=f"It is a pickle, and {when}. --unpickle reads it, and calls none of its code."
            )
        return _with_state(found, state_of(bytes(row["job_state"] or b"")), next_run, now)
    except UNREADABLE as error:
        return replace(found, refused=told(error))


def _with_state(found: Entry, state: dict[str, Any], next_run: datetime | None, now: datetime) -> Entry:
    trigger = translated(state.get("trigger"), next_run)
    args, kwargs = state.get("args") or (), state.get("kwargs") or {}
    if not isinstance(args, list | tuple) or not isinstance(kwargs, dict):
        return replace(found, refused="Its arguments cannot be read.")
    said, notes = _options(state)
    return replace(
        found,
        task=str(state.get("func", "")).replace(":", "."),
        schedule=trigger.schedule,
        said={"kwargs": kwargs, **said, **_bounds(trigger, now)},
        args=tuple(args),
        pause=Pause(reason="paused in APScheduler") if next_run is None else None,
        notes=(*found.notes, *notes),
    )


def _bounds(trigger: Trigger, now: datetime) -> dict[str, Any]:
    is_ahead = trigger.starts_at is not None and trigger.starts_at > now
    bounds = {"starts_at": trigger.starts_at if is_ahead else None, "ends_at": trigger.ends_at}
    return {name: at for name, at in bounds.items() if at is not None}


def _options(state: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Return the options of a job, and what is to be known of them."""
    options: dict[str, Any] = {}
    notes = list(_lost(state))
    grace, most = state.get("misfire_grace_time"), state.get("max_instances")
    if isinstance(grace, int) and grace > USUAL_GRACE:
        options |= {"misfire": "skip", "grace": grace}
        notes.append(f"misfire_grace_time is grace={grace} with misfire=skip")
    if isinstance(most, int) and most > 1:
        options |= {"overlap": "allow", "max_concurrent": most}
        notes.append(f"max_instances is max_concurrent={most} with overlap=allow")
    return options, notes


def _lost(state: dict[str, Any]) -> Iterator[str]:
    if state.get("misfire_grace_time") == USUAL_GRACE:
        yield "misfire_grace_time is 1 s there, the default; here a late slot runs once (misfire=run_latest)"
    if state.get("executor") not in (None, "default"):
        yield f"executor ({shown(state['executor'])}) is not carried over"
    if state.get("coalesce") is False:
        yield "coalesce is False there; here late slots are one run (misfire=run_latest)"
