"""Arguments: what people and programs give, checked. A wrong one raises InvalidOption, which says what it must be."""

import json
import math
import re
from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from numbers import Integral, Real
from typing import Any

from scheduler.exceptions import InvalidOption
from scheduler.safetext import shown
from scheduler.schedules.base import as_utc
from scheduler.schedules.linked import NAME_LENGTH
from scheduler.schedules.near import did_you_mean as did_you_mean

GROUP_LENGTH = 100
KEY_LENGTH = 255
DESCRIPTION_LENGTH = 500
MOST_LEVELS = 30
"""How deep JSON may be nested: MariaDB keeps 31 levels, the others more."""
LARGEST_KWARGS = 1024 * 1024
"""Characters of the JSON of keyword arguments: each run of a job keeps its own."""
NUL_IN_JSON = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")
"""NUL, not the text of its escape: an even number of backslashes before it are those of a text."""


def checked_name(name: object) -> str:
    """Return the name of a task or job: printable text without blank ends."""
    if isinstance(name, str) and len(name) > NAME_LENGTH:
        raise InvalidOption(f"the name has {len(name)} characters; at most {NAME_LENGTH} are allowed.", field="name")
    if not isinstance(name, str) or not name.strip():
        raise InvalidOption(f"the name is {shown(name)}; it must be a non-empty string.", field="name")
    if name != name.strip() or not name.isprintable():
        text = f"the name {name!r} has blank ends or unprintable characters; write it without them."
        raise InvalidOption(text, field="name")
    if "/" in name or name in (".", ".."):
        raise InvalidOption(
            f"the name {name!r} would break addresses, which have it in their path; write it without /.", field="name"
        )
    return name


def is_name(name: object) -> bool:
    """Whether there may be something of this name, so that a database can be asked for it."""
    return isinstance(name, str) and is_storable(name)


def checked_group(group: object) -> str:
    """Return the name of a group; empty: none."""
    name = checked_text("group", group, longest=GROUP_LENGTH)
    if name != name.strip():  # MariaDB and MySQL leave blanks at the end out of account
        raise InvalidOption(f"group is {name!r}; write it without blank ends.")
    if not name.isprintable():
        raise InvalidOption(f"group is {name!r}; write it without unprintable characters.")
    return name


def checked_priority(priority: object) -> int:
    """Return a priority."""
    return checked_whole("priority", priority, least=-1000, most=1000)


def checked_text(name: str, text: object, *, longest: int | None = None) -> str:
    """Return text that every database stores, of at most `longest` characters."""
    if not isinstance(text, str):
        raise InvalidOption(f"{name} is {shown(text)}; it must be a string.")
    if longest is not None and len(text) > longest:
        raise InvalidOption(f"{name} has {len(text)} characters; it must be a string of at most {longest} characters.")
    if not is_storable(text):
        raise InvalidOption(f"{name} is {shown(text)}; it holds NUL or a lone surrogate, which no database stores.")
    return text


def checked_key(name: str, key: object) -> str:
    """Return a key: text that every database tells apart from others, so without blank ends."""
    text = checked_text(name, key, longest=KEY_LENGTH)
    if not text or text != text.strip():
        raise InvalidOption(
            f"{name} is {shown(text)}; it must be text of 1 to {KEY_LENGTH} characters without blank ends."
        )
    return text


def checked_flag(name: str, value: object) -> bool:
    """Return a boolean."""
    if not isinstance(value, bool):
        raise InvalidOption(f"{name} is {shown(value)}; it must be True or False.")
    return value


def checked_whole(name: str, value: object, *, least: float = -math.inf, most: float = math.inf) -> int:
    """Return a whole number from `least` to `most`."""
    if isinstance(value, int) and not isinstance(value, bool) and least <= value <= most:
        return value
    within = f" from {least} to {most}" if math.isfinite(most) else ""
    raise InvalidOption(f"{name} is {shown(value)}; it must be a whole number{within}.")


def checked_number(name: str, value: object) -> int | float:
    """Return a finite number as JSON has it, also of a Decimal, a Fraction or another kind of number."""
    number = _as_number(value)
    if number is None:
        raise InvalidOption(f"{name} is {shown(value)}; it must be a finite number.")
    return number


def _as_number(value: object) -> int | float | None:
    try:
        if isinstance(value, Integral):
            number: int | float = int(value)
        elif isinstance(value, Real | Decimal):
            number = float(value)
        else:
            return None
        return number if math.isfinite(number) else None
    except (ValueError, OverflowError):  # no number, or too large to be a float
        return None


def checked_instant(name: str, at: object) -> datetime:
    """Return an instant, given as an aware datetime, in UTC."""
    if not isinstance(at, datetime):
        raise InvalidOption(f"{name} is {shown(at)}; it must be a datetime with a time zone.")
    if at.utcoffset() is None:
        raise InvalidOption(f"{name} has no time zone; pass an aware datetime.")
    return as_utc(at)


def optional_instant(name: str, at: object) -> datetime | None:
    """Return an instant, or None."""
    return None if at is None else checked_instant(name, at)


def checked_kwargs(kwargs: object) -> dict[str, Any]:
    """Return keyword arguments as a database gives them back: what they were made of is JSON."""
    if not isinstance(kwargs, Mapping) or not all(isinstance(name, str) for name in kwargs):
        raise InvalidOption(f"kwargs is {shown(kwargs)}; it must be a mapping of argument names to values.")
    given = dict(kwargs)
    _refuse_large(_least_length(given, LARGEST_KWARGS))
    try:
        text = json_of(given)
        _refuse_large(len(text))
        stored: dict[str, Any] = json.loads(text)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidOption(f"kwargs is {shown(kwargs)}; its values must be JSON: {error}.") from error
    return stored


def _refuse_large(length: int) -> None:
    if length > LARGEST_KWARGS:
        raise InvalidOption(f"kwargs have more than {LARGEST_KWARGS} characters as JSON; pass what tells where it is.")


def _least_length(value: object, most: int) -> int:
    """Return how long the JSON of a value is at least, counted as far as `most`: a large one is never written."""
    length, open_ones, end = -2, [iter((value,))], object()
    while open_ones and length <= most:
        one = next(open_ones[-1], end)
        if one is end:
            open_ones.pop()
            continue
        length += 2  # brackets, commas and colons
        if isinstance(one, dict | list | tuple):
            if len(open_ones) <= 2 * MOST_LEVELS:  # what is deeper is refused; it may hold itself
                open_ones += [iter(one.values()), iter(one)] if isinstance(one, dict) else [iter(one)]
        else:
            length += len(one) + 2 if isinstance(one, str) else 1
    return length


def json_of(value: object) -> str:
    """Return JSON that every database stores; raises TypeError, ValueError or RecursionError when there is none."""
    text = json.dumps(value, allow_nan=False)
    if "\\u" in text and (NUL_IN_JSON.search(text) or not is_storable(json.dumps(value, ensure_ascii=False))):
        raise ValueError("it holds NUL or a lone surrogate")
    if text.count("{") + text.count("[") > MOST_LEVELS and _is_deeper(value, MOST_LEVELS):
        raise ValueError(f"it is nested in more than {MOST_LEVELS} levels")
    return text


def _is_deeper(value: object, levels: int) -> bool:
    if not isinstance(value, dict | list | tuple):
        return False
    inner = value.values() if isinstance(value, dict) else value
    return not levels or any(_is_deeper(one, levels - 1) for one in inner)


def is_storable(text: str) -> bool:
    """Whether every database stores a text: PostgreSQL refuses NUL, and no encoder takes lone surrogates."""
    if "\x00" in text:
        return False
    try:
        return text.isascii() or bool(text.encode("utf-8"))
    except UnicodeEncodeError:
        return False
