"""Celery: the `beat_schedule` dict, of the settings or of an app."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import timedelta
from importlib import import_module
from typing import Any

from django.conf import settings

from scheduler.exceptions import InvalidOption, InvalidSchedule
from scheduler.management.transfer.entry import Entry
from scheduler.management.transfer.foreign.celery_crontab import FIELDS, translated
from scheduler.management.transfer.foreign.celery_entry import (
    CLOCKS,
    celery_zone,
    discarded,
    interval,
    lost_routing,
    solar_refused,
)
from scheduler.management.transfer.foreign.names import job_name
from scheduler.management.transfer.sources import Asked, Found
from scheduler.safetext import shown, told
from scheduler.schedules import Schedule

KEYS = {"task", "schedule", "args", "kwargs", "options", "relative"}
SETTING = "CELERY_BEAT_SCHEDULE"
Translation = tuple[Schedule, tuple[str, ...], bool]


def read(asked: Asked) -> Found:
    """Read CELERY_BEAT_SCHEDULE, or of `module:name` the app or the dict itself; raises InvalidOption."""
    schedule, zone = _given(asked.file) if asked.file else (getattr(settings, SETTING, None), celery_zone())
    if not isinstance(schedule, Mapping):
        where = asked.file or f"the setting {SETTING}"
        raise InvalidOption(f"{where} is {shown(schedule)}, no beat_schedule; give an app or a dict as module:name.")
    entries = [_entry(str(name), entry, zone) for name, entry in schedule.items()]
    return entries, [CLOCKS] if any(one.schedule and one.schedule.is_calendar for one in entries) else []


def _given(path: str) -> tuple[Any, str]:
    """Return the dict that `module:name` means, and the zone of its app."""
    module, colon, name = path.partition(":")
    try:
        found: Any = import_module(module)
        for part in name.split(".") if colon else ():
            found = getattr(found, part)
    except (ImportError, AttributeError, TypeError, ValueError) as error:
        raise InvalidOption(f"{path} cannot be imported: {told(error)}. Write it as module:name.") from error
    if isinstance(found, Mapping):
        return found, celery_zone()
    conf = getattr(found, "conf", None)
    return getattr(conf, "beat_schedule", None), _zone_of(getattr(found, "timezone", None))


def _zone_of(zone: Any) -> str:
    """Return the name of the zone of an app; that of the settings where it has none with a name."""
    name = getattr(zone, "key", None) or (zone if isinstance(zone, str) else None)
    return str(name) if name else "UTC" if str(zone) == "UTC" else celery_zone()


def _entry(key: str, entry: Any, zone: str) -> Entry:
    name, notes = job_name(key)
    place = f"entry {shown(key)}"
    if not isinstance(entry, Mapping):
        return Entry(place=place, name=name, refused=f"An entry is a dict, not {shown(entry)}.")
    try:
        schedule, more, ran = _schedule(entry.get("schedule"), zone)
    except InvalidSchedule as error:
        return Entry(place=place, name=name, refused=told(error))
    found = Entry(place=place, name=name, task=str(entry.get("task", "")), schedule=schedule, notes=(*notes, *more))
    return _with_call(found, entry, ran=ran)


def _with_call(found: Entry, entry: Mapping[str, Any], *, ran: bool) -> Entry:
    """Return the entry with what its task is called with, and how."""
    args, kwargs = entry.get("args") or (), entry.get("kwargs") or {}
    if not isinstance(args, list | tuple):
        return replace(found, refused="args is no list.")
    if not isinstance(kwargs, Mapping):
        return replace(found, refused="kwargs is no dict.")
    options = entry.get("options") or {}
    if not isinstance(options, Mapping):
        return replace(found, refused="options is no dict.")
    given, notes = _options(options)
    said = {"kwargs": dict(kwargs), "enabled": ran, **given}
    unknown = (f"{key!r} means nothing to Celery, and nothing here" for key in sorted(entry.keys() - KEYS))
    return replace(found, said=said, args=tuple(args), notes=(*found.notes, *notes, *unknown, *_relative(entry)))


def _relative(entry: Mapping[str, Any]) -> Iterator[str]:
    schedule = entry.get("schedule")
    if entry.get("relative") or getattr(schedule, "relative", False):
        yield "relative: Celery rounds its times to the unit of the interval; here they count from the import on"


def _options(options: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Return what the options of `apply_async` become, and what is to be known of them."""
    notes = list(lost_routing(options))
    given: dict[str, Any] = {}
    for name, value in options.items():
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if name == "expires" and is_number and value > 0:
            given, text = discarded(float(value))
            notes.append(text)
        elif name not in ("queue", "exchange", "routing_key", "headers", "priority"):
            notes.append(f"the option {name} is not carried over")
    return given, notes


def _schedule(given: Any, zone: str) -> Translation:
    """Return the schedule, its notes, and whether it ran there. Known by what it has, so that Celery may be gone."""
    if isinstance(given, timedelta):
        return interval(given), (), True
    if isinstance(given, int | float) and not isinstance(given, bool):
        return interval(timedelta(seconds=given)), (), True
    if all(hasattr(given, name) for name in FIELDS):
        return _crontab(given, zone)
    if isinstance(length := getattr(given, "run_every", None), timedelta):
        return interval(length), (), True
    if hasattr(given, "lat") and hasattr(given, "lon"):
        raise InvalidSchedule(solar_refused(getattr(given, "event", "?"), given.lat, given.lon))
    raise InvalidSchedule(f"{shown(given)} is a schedule of your own: write it as one of the kinds here.")


def _crontab(given: Any, zone: str) -> Translation:
    """Read a crontab by what was written, since that says where it began with `*`, else by its numbers."""
    fields = {name: getattr(given, f"_orig_{name}", getattr(given, name)) for name in FIELDS}
    own = getattr(given, "tz", None) if type(given).__name__ == "TzAwareCrontab" else None
    found = translated(fields, _zone_of(own) if own is not None else zone)
    nowfun = ("it has a nowfun of its own, which is not asked here",) if _has_nowfun(given) and own is None else ()
    return found.schedule, (*found.notes, *nowfun), found.ran


def _has_nowfun(given: Any) -> bool:
    return getattr(given, "nowfun", None) is not None
