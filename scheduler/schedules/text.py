"""The grammar of one-line schedules: text in, the data `codec.from_dict` reads out."""

import re
from functools import cache
from typing import Any

from scheduler.exceptions import InvalidSchedule
from scheduler.schedules.base import Schedule, Slots, plain
from scheduler.schedules.cron import Cron
from scheduler.schedules.duration import parse_duration
from scheduler.schedules.kinds import KINDS
from scheduler.schedules.linked import LONGEST

LONGEST_WORD = 1000
"""Characters in which the first word is looked for."""
EXAMPLES = (
    '"every 1h30m", "daily at 03:00", "weekly on mon,fri at 09:00", "monthly on 1 at 03:00" or "cron 0 9 * * 1-5"'
)
ZONE = re.compile(r"\s+@\s+(\S+)$")
JITTER = re.compile(r"\s+with jitter\s+([^@]+)$", re.IGNORECASE)


def parse_fields(text: str) -> dict[str, Any]:
    """The data of one line; InvalidSchedule shows the forms when it has none of them."""
    if len(text) > LONGEST:
        raise InvalidSchedule(f"the schedule has {len(text)} characters; at most {LONGEST} are read.")
    line = text.strip()
    word = line[:LONGEST_WORD].partition(" ")[0].lower()
    kinds = {name.partition("_")[0]: kind for name, kind in KINDS.items()}
    kind = kinds.get(word, Cron)  # an expression of cron may do without the word
    if len(line) > kind.longest_line:
        raise InvalidSchedule(f"the schedule has {len(line)} characters; a line has at most {kind.longest_line}.")
    if word not in kinds and re.fullmatch(r"[a-z]{4,}.*", word, re.ASCII):
        raise InvalidSchedule(f'"{text}" is no schedule: write one like {EXAMPLES}.')
    options: dict[str, Any] = {}
    if kind.slots in (Slots.TIMED, Slots.ONE):
        line = _take(ZONE, line, "timezone", options)
        line = _take(JITTER, line, "jitter", options)
    match = _pattern(kind.line).fullmatch(line)
    if match is None:
        raise InvalidSchedule(f'"{text}" is no schedule: write one like {EXAMPLES}.')
    if "jitter" in options:
        options["jitter"] = plain(parse_duration(options["jitter"], field="jitter"))
    found = {name: value for name, value in match.groupdict().items() if value is not None}
    return {"type": kind.kind, **_converted(kind, found), **options}


_pattern = cache(lambda line: re.compile(line, re.IGNORECASE | re.ASCII))


def _take(suffix: re.Pattern[str], line: str, name: str, options: dict[str, Any]) -> str:
    match = suffix.search(line)
    if match is None:
        return line
    options[name] = match[1]
    return line[: match.start()]


def _converted(kind: type[Schedule], found: dict[str, str]) -> dict[str, Any]:
    fields = {key: field for field in kind.fields for key in field.keys}
    return {name: fields[name].from_text(value) if name in fields else value for name, value in found.items()}
