"""The options of a policy as the texts that people write, and back."""

import re
from collections.abc import Callable
from datetime import datetime, time, timedelta
from enum import StrEnum
from typing import Any

from django.utils.translation import gettext as _

from scheduler.engine.views.datetimes import local, parse_moment
from scheduler.exceptions import ConfigurationError
from scheduler.policy.backoff import MOST_STEPS, Backoff, Exponential, Steps
from scheduler.policy.codec import clock_text, kind_of, read_option
from scheduler.policy.ratelimit import RateLimit
from scheduler.schedules import format_duration, parse_duration
from scheduler.schedules.base import as_utc

NONE = "none"
NONE_WORDS = (NONE, "never", "no limit", "-")
GROWING = re.compile(r"(?P<base>[^,]+?)\s*x\s*(?P<factor>\d+(?:\.\d+)?)(?:\s+up\s+to\s+(?P<cap>.+))?", re.IGNORECASE)
HINTS: dict[Any, Callable[[], str]] = {
    timedelta: lambda: _("Write a length of time such as 30s, 5m or 1h30m."),
    int: lambda: _("Write a whole number."),
    Backoff: lambda: _("Write delays such as 30s, 1m, 5m, or a growing one such as 1m x2 up to 1h."),
    RateLimit: lambda: _("Write a number of runs and a time, such as 10/h or 5/10min."),
    datetime: lambda: _("Write a date and time such as 2027-01-31 12:00."),
    time: lambda: _("Write a time of day such as 06:00."),
}


def choices_of(kind: Any) -> list[str]:
    """Return what can be chosen; empty for an option that is written."""
    if kind is bool:
        return ["False", "True"]
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        return [str(member) for member in kind]
    return []


def text_of(value: Any) -> str:
    """Return the value of an option as it is written."""
    match value:
        case None | Steps(()):
            return NONE
        case timedelta():
            return format_duration(value)
        case datetime():
            return local(value).isoformat(sep=" ")
        case time():
            return clock_text(value)
        case Steps():
            return ", ".join(format_duration(step) for step in value.steps)
        case Exponential():
            return f"{format_duration(value.base)} x{_plain(value.factor)} up to {format_duration(value.cap)}"
    return str(value)


def _plain(number: float) -> str:
    return str(number).removesuffix(".0")


def value_of(name: str, text: str, now: datetime) -> Any:
    """Return what the text of an option means; raises ConfigurationError or ValueError that says what to write."""
    kind, optional = kind_of(name)
    words = text.strip()
    if words.lower() in (*NONE_WORDS, _(NONE)) and optional:
        return read_option(name, None)
    try:
        return read_option(name, _loose(kind, words, now))
    except (ConfigurationError, ValueError, OverflowError) as error:
        if kind not in HINTS:
            raise
        raise ValueError(_("“{text}” is not understood.").format(text=words[:60]) + " " + HINTS[kind]()) from error


def _loose(kind: Any, words: str, now: datetime) -> Any:
    if kind is bool:
        return words == "True"
    if kind is int:
        return int(words)
    if kind is timedelta:
        return parse_duration(words)
    if kind is datetime:
        return _as_shown(words) or parse_moment(words, now)
    return _delays(words) if kind is Backoff else words


def _as_shown(words: str) -> datetime | None:
    """An instant with its offset, as `text_of` writes it: also one that is never asked about, such as the last."""
    try:
        at = datetime.fromisoformat(words)
    except ValueError:
        return None
    return None if at.tzinfo is None else as_utc(at)


def _delays(words: str) -> Any:
    growing = GROWING.fullmatch(words)
    if growing is None:
        parts = words.split(",", MOST_STEPS)
        return parts if len(parts) > MOST_STEPS else [parse_duration(part.strip()) for part in parts]
    found = {"base": parse_duration(growing["base"]), "factor": float(growing["factor"])}
    return found | ({"cap": parse_duration(growing["cap"])} if growing["cap"] else {})
