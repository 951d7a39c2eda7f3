"""Lengths of time as people write them: `1h30m`, `90s`, `2 days`, `0.5s`."""

import math
import re
from datetime import timedelta
from decimal import Decimal

from scheduler.exceptions import InvalidSchedule
from scheduler.safetext import shown

MICROSECONDS = {"d": 86_400_000_000, "h": 3_600_000_000, "m": 60_000_000, "s": 1_000_000, "ms": 1000, "us": 1}
SPELLINGS = {
    "w": ("w", "week", "weeks"),
    "d": ("d", "day", "days"),
    "h": ("h", "hr", "hrs", "hour", "hours"),
    "m": ("m", "min", "mins", "minute", "minutes"),
    "s": ("s", "sec", "secs", "second", "seconds"),
    "ms": ("ms", "millisecond", "milliseconds"),
    "us": ("us", "microsecond", "microseconds"),
}
UNIT_OF = {spelling: unit for unit, spellings in SPELLINGS.items() for spelling in spellings}
WEEK = 7 * MICROSECONDS["d"]
PART = re.compile(r"\s*(\d{1,18}(?:\.\d{1,9})?)?\s*([a-z]+)\s*(?:,|and\b)?", re.ASCII)

PARTS = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))
SHORT = 59.95
"""Seconds below which a length is said with three digits that matter."""
DIGITS = ((1, "s"), (1_000, "ms"), (1_000_000, "µs"))
LONGEST_TEXT = 200
"""Characters: longer ones are not read at all."""
LONGEST = timedelta(days=36_525)
"""A hundred years: anything longer is taken for a mistake."""


def parse_duration(value: str | timedelta | float, *, field: str = "interval") -> timedelta:
    """A length of time from text (`1h30m`, `90s`, `2 days`, `hour`), a number of seconds, or a timedelta.

    Zero is allowed. InvalidSchedule names `field` when the value is no length, negative, or over 100 years.
    """
    if isinstance(value, timedelta):
        length = value
    elif isinstance(value, str):
        length = _read(value, field)
    else:
        length = _bounded(number(value, field=field) * MICROSECONDS["s"], value, field)
    if length < timedelta(0) or length > LONGEST:
        raise _out_of_bounds(value, field)
    return length


def number(value: object, *, field: str) -> Decimal:
    """A finite number, exactly as written; InvalidSchedule for text, booleans, NaN and infinity."""
    if isinstance(value, int) and not isinstance(value, bool):
        return Decimal(value)
    if isinstance(value, float) and math.isfinite(value):
        return Decimal(str(value))
    raise InvalidSchedule(f"{field} must be a finite number, not {_shown(value)}.", field=field)


def format_duration(length: timedelta) -> str:
    """The shortest text `parse_duration` reads back as the same length: `1d`, `1h30m`, `0.5s`."""
    left = _microseconds(length)
    parts = []
    for unit in ("d", "h", "m"):
        amount, left = divmod(left, MICROSECONDS[unit])
        if amount:
            parts.append(f"{amount}{unit}")
    if left or not parts:
        seconds = f"{left / MICROSECONDS['s']:.6f}".rstrip("0").rstrip(".")
        parts.append(f"{seconds}s")
    return "".join(parts)


def length_words(length: timedelta | float | None, *, parts: int = 2) -> str:
    """A length as people read it, rounded: `27 µs`, `4.2 ms`, `1.35 s`, `12 min 5 s`, `2 d 3 h`; empty for None.

    A number is one of seconds. With `parts=1` in its largest unit alone, from seconds on.
    """
    if length is None:
        return ""
    seconds = abs(length.total_seconds() if isinstance(length, timedelta) else length)
    if parts > 1 and 0 < seconds < SHORT:
        factor, unit = next(one for one in DIGITS if seconds * one[0] >= 1 or one is DIGITS[-1])
        return f"{float(f'{seconds * factor:.3g}'):g} {unit}"
    found, left = [], int(seconds)
    for size, unit in PARTS:
        if left >= size:
            found.append(f"{left // size} {unit}")
            left %= size
    return " ".join(found[:parts]) or "0 s"


def _microseconds(length: timedelta) -> int:
    return length // timedelta(microseconds=1)


def _read(text: str, field: str) -> timedelta:
    if len(text) > LONGEST_TEXT:
        raise _not_a_duration(text, field)
    rest, total = text.strip().lower(), Decimal(0)
    if not rest:
        raise _not_a_duration(text, field)
    while rest:
        part = PART.match(rest)
        if part is None or part[2] not in UNIT_OF:
            raise _not_a_duration(text, field)
        unit = UNIT_OF[part[2]]
        total += Decimal(part[1] or 1) * (WEEK if unit == "w" else MICROSECONDS[unit])
        rest = rest[part.end() :]
    return _bounded(total, text, field)


def _bounded(microseconds: Decimal, value: object, field: str) -> timedelta:
    if abs(microseconds) > _microseconds(LONGEST):
        raise _out_of_bounds(value, field)
    return timedelta(microseconds=round(microseconds))


def _out_of_bounds(value: object, field: str) -> InvalidSchedule:
    return InvalidSchedule(f"{field} must be between 0 and 100 years, not {_shown(value)}.", field=field)


def _not_a_duration(text: str, field: str) -> InvalidSchedule:
    message = f'{field} {_shown(text)} is not a length of time: write one like "90s", "1h30m" or "2d".'
    return InvalidSchedule(message, field=field)


def _shown(value: object) -> str:
    """A value for a message; a number of thousands of digits cannot even be printed."""
    if isinstance(value, int) and abs(value) > 10**30:
        return "so large a number"
    return shown(value, 60)
