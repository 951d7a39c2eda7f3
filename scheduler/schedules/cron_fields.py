"""The cron dialect: what each field may hold, and what to write instead of what it may not.

Five fields as in crontab(5), or six with seconds first. Pieces that pass are rewritten to the plain subset croniter
expands unambiguously; `L`, `W` and `#` are kept apart, since croniter intersects them where cron unites.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import NamedTuple

from scheduler.exceptions import InvalidSchedule
from scheduler.safetext import shown

LONGEST = 255
MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
WEEKDAYS = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"]
EXAMPLE = 'write one like "0 9 * * 1-5"'
MACROS = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}
MACRO_ADVICE = {
    "@reboot": "it is no time: use a schedule such as Once, or the server's own start",
    "@every": 'write Every("5m"), or the text "every 5m"',
}
LAST = -1
"""The place of a weekday counted from the end of the month: `5L` is the last Friday."""


class Field(NamedTuple):
    """One field of an expression: its name in code, in words, and what it may hold."""

    name: str
    label: str
    low: int
    high: int
    names: Mapping[str, int] = {}

    def refuse(self, piece: str, why: str) -> InvalidSchedule:
        return InvalidSchedule(f'{self.label} field: "{piece}" {why}.', field=self.name)

    @property
    def allowed(self) -> str:
        if self.name == "weekday":
            return "0-7 (0 and 7 are Sunday) or sun-sat"
        return f"{self.low}-{self.high}" + (" or jan-dec" if self.names else "")


SECOND = Field("second", "second", 0, 59)
MINUTE = Field("minute", "minute", 0, 59)
HOUR = Field("hour", "hour", 0, 23)
DAY = Field("day", "day of month", 1, 31)
MONTH = Field("month", "month", 1, 12, {name: number for number, name in enumerate(MONTHS, 1)})
WEEKDAY = Field("weekday", "day of week", 0, 7, {name: number for number, name in enumerate(WEEKDAYS)})
FIELDS = (SECOND, MINUTE, HOUR, DAY, MONTH, WEEKDAY)


@dataclass(frozen=True, slots=True)
class Parts:
    """What one field holds: plain pieces for croniter, the special ones understood."""

    text: str
    plain: str = ""
    last_day: bool = False
    nearest: frozenset[int] = frozenset()
    nth: frozenset[tuple[int, int]] = frozenset()
    wide_steps: tuple[tuple[str, int], ...] = ()
    """Pieces whose step leads past their range, each with the one value that is left of it."""

    @property
    def starred(self) -> bool:
        """Begins with `*`: cron(8)'s mark of a wildcard, whatever follows."""
        return self.text.startswith("*")

    @property
    def mixed(self) -> bool:
        """A list in which some items are special: days such as `L`, or a bare `*`."""
        items = self.text.split(",")
        return len(items) > 1 and ("*" in items or self.last_day or bool(self.nearest or self.nth))

    @property
    def restricted(self) -> bool:
        """Does not simply allow everything."""
        return self.text != "*"


def checked_text(expression: object) -> str:
    """Text short enough to be read; forms and programs give all sorts of things."""
    if not isinstance(expression, str):
        raise _refuse(f"the cron expression must be text, not {shown(expression)}: {EXAMPLE}.")
    if len(expression) > LONGEST:
        raise _refuse(f"the cron expression has {len(expression)} characters: at most {LONGEST} are allowed.")
    return expression


def split(expression: str) -> list[str]:
    """The texts of the six fields in lower case, seconds first ("0" when not given); keywords are resolved."""
    strange = next((char for char in expression if not (" " <= char <= "~" or char in "\t\r\n")), None)
    if strange is not None:
        raise _refuse(f"the cron expression holds {strange!r}: write 0-9, a-z, spaces and * , - / ? # only.")
    text = expression.strip(" \t\r\n").lower()
    if not text:
        raise _refuse(f"the cron expression is empty: {EXAMPLE}.")
    pieces = re.split(r"[ \t]+", _macro(text) if text.startswith("@") else text)
    if len(pieces) not in (5, 6):
        raise _refuse(
            "a cron expression has 5 fields (minute hour day month weekday), or 6 with seconds first, "
            f"not {len(pieces)}: {EXAMPLE}, without a year or a command."
        )
    return pieces if len(pieces) == 6 else ["0", *pieces]


def read(field: Field, text: str) -> Parts:
    """Check one field; InvalidSchedule names it, the wrong piece, and what to write."""
    if text == "?":
        if field not in (DAY, WEEKDAY):
            raise field.refuse(text, 'stands in day fields only: write "*"')
        text = "*"
    plain: list[str] = []
    special: list[Parts] = []
    wide: list[tuple[str, int]] = []
    for item in text.split(","):
        found = _special(field, item)
        if found is not None:
            special.append(found)
            continue
        plain.append(_plain(field, item, text, wide))
    return Parts(
        text=text,
        plain=",".join(plain),
        last_day=any(part.last_day for part in special),
        nearest=frozenset().union(*(part.nearest for part in special)),
        nth=frozenset().union(*(part.nth for part in special)),
        wide_steps=tuple(wide),
    )


def _refuse(message: str) -> InvalidSchedule:
    return InvalidSchedule(message, field="expression")


def _macro(text: str) -> str:
    name = text.split()[0]
    if name in MACRO_ADVICE:
        raise _refuse(f'"{name}" is not supported: {MACRO_ADVICE[name]}.')
    if text in MACROS:
        return MACROS[text]
    close = get_close_matches(name, MACROS, n=1)
    advice = f'write "{close[0]}" alone' if close else f"write one of {' '.join(MACROS)}"
    raise _refuse(f'"{text}" is no cron keyword: {advice}.')


def _plain(field: Field, item: str, text: str, wide: list[tuple[str, int]]) -> str:
    """One list item of numbers, names, `*`, ranges and steps, in numbers croniter reads one way only."""
    if not item:
        raise field.refuse(text, "has an empty list item: remove the extra comma")
    base, slash, step_text = item.partition("/")
    _refuse_hashes(field, item, base)
    if not base:
        raise field.refuse(item, f'has no start: write "*{item}"')
    step = _step(field, item, step_text) if slash else 1
    low, high = _bounds(field, item, base, slash)
    if slash and step > high - low:
        wide.append((item, low))
    if field is WEEKDAY and high == 7:
        return ",".join(str(day % 7) for day in range(low, high + 1, step))
    # croniter reads "a-a" as the whole field.
    if low == high:
        return str(low)
    return f"{low}-{high}/{step}"


def _bounds(field: Field, item: str, base: str, slash: str) -> tuple[int, int]:
    if base == "*":
        return field.low, 6 if field is WEEKDAY else field.high
    start, dash, end = base.partition("-")
    if dash and not (start and end):
        raise field.refuse(item, f'is half a range: write one like "{field.low + 1}-{field.low + 3}"')
    low = _value(field, item, start)
    if dash:
        return _range(field, item, low, start, end)
    if not slash:
        return low, low
    if field is WEEKDAY:
        raise field.refuse(item, f'is read differently by each cron: write "{low % 7}-6{item[item.index("/") :]}"')
    return low, field.high


def _range(field: Field, item: str, low: int, start: str, end: str) -> tuple[int, int]:
    high = _value(field, item, end)
    if end == "sun" and start != "sun":
        high = 7
    if low > high:
        raise field.refuse(item, f'runs backwards: write "{_forwards(field, low, high, start)}"')
    return low, high


def _forwards(field: Field, low: int, high: int, start: str) -> str:
    """The list a reversed range was meant to be."""
    if field is WEEKDAY or start in field.names:
        span = 7 if field is WEEKDAY else 12
        count = (high - low) % span + 1
        numbers = [(low - field.low + step) % span + field.low for step in range(count)]
        words = {number: name for name, number in field.names.items()}
        return ",".join(words[number] if start in field.names else str(number) for number in numbers)
    parts = [(low, field.high), (field.low, high)]
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in parts)


def _value(field: Field, item: str, text: str) -> int:
    if re.fullmatch(r"[0-9]{1,3}", text) and field.low <= int(text) <= field.high:
        return int(text)
    if text in field.names:
        return field.names[text]
    if re.fullmatch(r"[0-9]+", text):
        hint = ", and no year" if field is WEEKDAY and len(text) == 4 else ""
        raise field.refuse(item, f"is out of range: write {field.allowed}{hint}")
    if text[:3] in field.names:
        raise field.refuse(item, f'is a long name: write "{text[:3]}"')
    raise field.refuse(item, f"is not understood: write {field.allowed}, a list, a range or a step like */2")


def _step(field: Field, item: str, text: str) -> int:
    # Larger than the field is harmless and means its first value only; three digits keep typing errors out.
    if re.fullmatch(r"[0-9]{1,3}", text) and int(text):
        return int(text)
    raise field.refuse(item, f"has a wrong step: write a whole number from 1 to {field.high - field.low} after the /")


def _refuse_hashes(field: Field, item: str, base: str) -> None:
    if re.fullmatch(r"[hr](\(.*\)?)?", base):
        kind = "a hashed" if base[0] == "h" else "a random"
        raise field.refuse(item, f"asks for {kind} time: write a fixed value, and spread the starts with jitter=")


def _special(field: Field, item: str) -> Parts | None:
    if field is DAY:
        return _special_day(item)
    if field is WEEKDAY:
        return _special_weekday(item)
    return None


def _special_day(item: str) -> Parts | None:
    if item == "l":
        return Parts(item, last_day=True)
    if re.fullmatch(r"[0-9]{1,3}w", item):
        number = int(item[:-1])
        if 1 <= number <= 28:
            return Parts(item, nearest=frozenset({number}))
        raise DAY.refuse(item, 'is not in every month: write 1W to 28W, or "L" for the last day')
    if "w" in item or item.startswith("l"):
        raise DAY.refuse(
            item, 'is not supported: write "L" for the last day, or one like "15W" for the weekday nearest it'
        )
    if "#" in item or item.endswith("l"):
        raise DAY.refuse(item, "belongs in the day of week field: write it there")
    return None


def _special_weekday(item: str) -> Parts | None:
    if item.endswith("l") and len(item) > 1:
        return Parts(item, nth=frozenset({(_value(WEEKDAY, item, item[:-1]) % 7, LAST)}))
    if item.startswith("l"):
        day = item[1:] or "5"
        raise WEEKDAY.refuse(item, f'is not supported: write "{day}L" for the last such day of the month')
    day, sign, place = item.partition("#")
    if sign:
        if "-" in day or not day or place not in ("1", "2", "3", "4", "5"):
            raise WEEKDAY.refuse(item, 'is no place in the month: write one like "2#1" (first Tuesday), up to #5')
        return Parts(item, nth=frozenset({(_value(WEEKDAY, item, day) % 7, int(place))}))
    if item.endswith("w"):
        raise WEEKDAY.refuse(item, 'belongs in the day of month field: write one like "15W" there')
    return None
