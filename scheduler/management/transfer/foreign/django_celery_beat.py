"""django-celery-beat: its tables, of release 1.1 or later."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from scheduler.engine.base import Engine
from scheduler.engine.db.shared_time import shared_now
from scheduler.exceptions import InvalidOption, InvalidSchedule
from scheduler.management.transfer.entry import Entry
from scheduler.management.transfer.foreign.celery_crontab import FIELDS, translated
from scheduler.management.transfer.foreign.celery_entry import (
    CLOCKS,
    HOUSEKEEPING,
    celery_zone,
    discarded,
    interval,
    is_tz_aware,
    lost_routing,
    solar_refused,
)
from scheduler.management.transfer.foreign.names import job_name
from scheduler.management.transfer.foreign.tables import UNREADABLE, Row, Tables
from scheduler.management.transfer.sources import Asked, Found
from scheduler.management.transfer.strict_json import strict_json
from scheduler.safetext import shown, told
from scheduler.schedules import Schedule, from_dict

PREFIX = "django_celery_beat_"
KINDS = {
    "interval": "intervalschedule",
    "crontab": "crontabschedule",
    "solar": "solarschedule",
    "clocked": "clockedschedule",
}
KINDS_OF_JSON: dict[type, str] = {list: "a list", dict: "an object", str: "a text"}
PERIODS = ("days", "hours", "minutes", "seconds", "microseconds")
Call = tuple[tuple[Any, ...], dict[str, Any], list[str]]


def read(asked: Asked) -> Found:
    """Read the tables; raises InvalidOption where they are not there."""
    tables = Tables(asked.database)
    rows = tables.rows(f"{PREFIX}periodictask")
    reader = _Reader(tables, {kind: tables.by_id(f"{PREFIX}{table}") for kind, table in KINDS.items()})
    entries = [reader.entry(row) for row in rows]
    notes = [CLOCKS] if any(one.schedule and one.schedule.is_calendar for one in entries) else []
    if not is_tz_aware():
        notes.append(f"DJANGO_CELERY_BEAT_TZ_AWARE is False: all crontabs follow {celery_zone()}, not their own zone.")
    return entries, notes


class _Reader:
    """Makes entries of rows. `schedules` holds the rows of each kind of schedule by their ids."""

    def __init__(self, tables: Tables, schedules: Mapping[str, Mapping[Any, Row]]) -> None:
        self._tables, self._schedules = tables, schedules
        self._now = shared_now(Engine().using)

    def entry(self, row: Row) -> Entry:
        name, notes = job_name(str(row["name"]))
        found = Entry(place=f"row {row['id']}", name=name, task=str(row["task"]), notes=tuple(notes))
        if found.task == HOUSEKEEPING:
            return replace(found, over="Celery removes its own results by this; there are none here.")
        try:
            return self._with_schedule(found, row)
        except UNREADABLE as error:
            return replace(found, refused=told(error))

    def _with_schedule(self, found: Entry, row: Row) -> Entry:
        args, kwargs, notes = _call(row)
        kind, of_kind = self._kind(row)
        notes += [*found.notes, *lost_routing(row)]
        options, more = self._limits(row, kind)
        schedule, of_schedule, ran = self._schedule(kind, of_kind, row)
        said = {
            "kwargs": kwargs,
            "enabled": bool(row["enabled"]) and ran,
            "description": str(row.get("description") or "")[:500],
            **options,
        }
        over = self._over(row, schedule)
        notes += [*more, *of_schedule]
        return replace(found, schedule=schedule, said=said, args=args, notes=tuple(notes), over=over)

    def _kind(self, row: Row) -> tuple[str, Row]:
        """Return which kind of schedule a row has, and its row; raises InvalidOption for none, and for several."""
        kinds = [kind for kind in KINDS if row.get(f"{kind}_id") is not None]
        if len(kinds) != 1:
            raise InvalidOption(f"It has {' and '.join(kinds) or 'no schedule'}; one kind of schedule must be set.")
        (kind,) = kinds
        of_kind = self._schedules[kind].get(row[f"{kind}_id"])
        if of_kind is None:
            raise InvalidOption(f"Its {kind} {row[f'{kind}_id']} is gone.")
        return kind, of_kind

    def _schedule(self, kind: str, of_kind: Row, row: Row) -> tuple[Schedule, tuple[str, ...], bool]:
        """Return the schedule, what is to be known of it, and whether it ran there."""
        if kind == "crontab":
            zone, notes = _zone(of_kind)
            found = translated({name: of_kind[name] for name in FIELDS}, zone)
            return found.schedule, (*notes, *found.notes), found.ran
        if kind == "solar":
            raise InvalidSchedule(solar_refused(of_kind["event"], of_kind["latitude"], of_kind["longitude"]))
        if kind == "clocked":
            at = self._tables.instant(of_kind["clocked_time"])
            return from_dict({"type": "once", "at": at.isoformat() if at else None}), (), True
        if of_kind["period"] not in PERIODS:
            raise InvalidSchedule(f"The period {shown(of_kind['period'])} is unknown.")
        return interval(_length(of_kind), anchor=self._anchor(row)), (), True

    def _anchor(self, row: Row) -> datetime | None:
        """Return from when an interval counts: its last run, or its start."""
        last, start = (self._tables.instant(row.get(name)) for name in ("last_run_at", "start_time"))
        return last or start or self._tables.instant(row.get("date_changed"))

    def _limits(self, row: Row, kind: str) -> tuple[dict[str, Any], list[str]]:
        """Return the options that bound a schedule, and what is to be known of them."""
        options: dict[str, Any] = {}
        notes = []
        start, end = self._tables.instant(row.get("start_time")), self._tables.instant(row.get("expires"))
        if start and start > self._now and kind != "clocked":
            options["starts_at"] = start
            notes.append(f"start_time is starts_at: {start.isoformat()}")
        if end:
            options["ends_at"] = end
            notes.append(f"expires is ends_at: {end.isoformat()}")
        if row.get("one_off") and kind != "clocked":
            options["max_runs"] = 1
            notes.append("one_off is max_runs=1")
        if seconds := row.get("expire_seconds"):
            more, text = discarded(float(seconds))
            return options | more, [*notes, text]
        return options, notes

    def _over(self, row: Row, schedule: Schedule) -> str:
        """Say why nothing is left of a one-off; empty where it is no one, or is to come."""
        if row.get("one_off") and row.get("total_run_count"):
            return "It is a one-off and has run."
        if not schedule.is_interval and not schedule.is_calendar and schedule.next_after(self._now) is None:
            return f"Its only instant has passed, and what has passed is not run: {schedule.to_text()}."
        return ""


def _length(of_kind: Row) -> timedelta:
    try:
        return timedelta(**{of_kind["period"]: of_kind["every"]})
    except (OverflowError, TypeError) as error:
        raise InvalidSchedule(f"It is every {of_kind['every']} {of_kind['period']}: {told(error)}.") from None


def _zone(crontab: Row) -> tuple[str, list[str]]:
    """Return the zone of a crontab. An old release had none, and a row that it wrote may have it empty."""
    zone = crontab.get("timezone")
    if zone and is_tz_aware():
        return str(zone), []
    told_zone = [] if zone else [f"it has no time zone; {celery_zone()} is Celery's"]
    return celery_zone(), told_zone


def _call(row: Row) -> Call:
    """Return arguments by position and by name, and what is to be known of them; raises InvalidOption."""
    args, kwargs = (_read(row, name, kind) for name, kind in (("args", list), ("kwargs", dict)))
    return tuple(args), kwargs, list(_empty(row, "kwargs", "[]")) + list(_empty(row, "args", "{}"))


def _read(row: Row, name: str, kind: type) -> Any:
    text = str(row.get(name) or "").strip()
    found = strict_json(text, name) if text else kind()
    if not found and found is not False and found != 0:
        return kind()
    if not isinstance(found, kind):
        must = KINDS_OF_JSON[kind]
        raise InvalidOption(f"{name} is {KINDS_OF_JSON.get(type(found), 'a single value')}; it must be {must} in JSON.")
    return found


def _empty(row: Row, name: str, text: str) -> Iterator[str]:
    if str(row.get(name) or "").strip() == text:
        yield f"{name} is {text}, which is read as none"
