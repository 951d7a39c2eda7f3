"""Schedules as JSON-ready data and as lines of text, both ways."""

import json
import re
from collections.abc import Mapping
from datetime import timedelta
from inspect import signature
from typing import Any

from scheduler.exceptions import InvalidSchedule
from scheduler.safetext import shown
from scheduler.schedules.base import Schedule
from scheduler.schedules.every import Every
from scheduler.schedules.kinds import KINDS
from scheduler.schedules.linked import LONGEST
from scheduler.schedules.meant import meant
from scheduler.schedules.near import did_you_mean
from scheduler.schedules.text import parse_fields

UNKNOWN_KEY = re.compile(r"unexpected keyword argument '(.*?)'")


def from_dict(data: Mapping[str, Any]) -> Schedule:
    """The schedule `to_dict` described; InvalidSchedule names the key that is wrong or unknown."""
    if not isinstance(data, Mapping):
        raise InvalidSchedule(f"a schedule in JSON is an object, not {shown(data)}.")
    options = {name: value for name, value in data.items() if value is not None}
    kind = options.pop("type", None)
    if not isinstance(kind, str) or kind not in KINDS:
        raise InvalidSchedule(f"type {shown(kind)} is unknown: write one of {', '.join(sorted(KINDS))}.", field="type")
    try:
        return KINDS[kind].from_dict(options)
    except TypeError as error:
        raise InvalidSchedule(_misread(kind, str(error)), field="schedule") from None


def parse_text(text: str) -> Schedule:
    """Read one line: `every 1h30m`, `daily at 03:00 @ Europe/Berlin`, a bare cron expression; what `to_text` writes."""
    kind = ""
    try:
        fields = parse_fields(text)
        kind = fields["type"]
        return from_dict(fields)
    except InvalidSchedule as error:
        if kind not in ("", "cron", "every") or not (line := meant(text)):
            raise
        raise InvalidSchedule(f'"{text}" is no schedule: did you mean "{line}"?', field=error.field) from None


def parse(value: Schedule | Mapping[str, Any] | str | timedelta) -> Schedule:
    """A schedule from whatever a person or program gave: itself, data, text, JSON text, or a timedelta (Every)."""
    try:
        return _parsed(value)
    except RecursionError:  # while it is read, or shown in the message that refuses it
        raise InvalidSchedule("a schedule is not so deeply nested.") from None


def _parsed(value: Schedule | Mapping[str, Any] | str | timedelta) -> Schedule:
    if isinstance(value, Schedule):
        return value
    if isinstance(value, timedelta):
        return Every(value)
    if isinstance(value, Mapping):
        return from_dict(value)
    if not isinstance(value, str):
        raise InvalidSchedule(f"a schedule is text, JSON data or a Schedule object, not {shown(value)}.")
    return from_dict(_decoded(value)) if value.lstrip().startswith("{") else parse_text(value)


def _decoded(text: str) -> Any:
    if len(text) > LONGEST:
        raise InvalidSchedule(f"the schedule has {len(text)} characters; at most {LONGEST} are read.")
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidSchedule(f"the schedule is not valid JSON: {error}.") from None


def _misread(kind: str, error: str) -> str:
    """What is wrong with the keys of a schedule, from Python's “got an unexpected keyword argument 'hour'”."""
    detail = error.partition("() ")[2] or error
    if unknown := UNKNOWN_KEY.search(detail):
        takes = [name for name in signature(KINDS[kind]).parameters if name != "self"]
        hint = did_you_mean(unknown[1], takes) or f" It takes {', '.join(takes)}."
        return f'schedule of type "{kind}" takes no {shown(unknown[1])}.{hint}'
    return f'schedule of type "{kind}" {detail}.'
