"""The grammar of one-line schedules: text in, the data `codec.from_dict` reads out."""

import re
from typing import Any

from scheduler.exceptions import InvalidSchedule
from scheduler.schedules.duration import parse_duration
from scheduler.schedules.every import plain_seconds

CLOCK = r"(?P<hour>\d{1,2}):(?P<minute>\d{2})(?::(?P<second>\d{2}))?"
FORMS = {
    "daily": re.compile(rf"daily at {CLOCK}", re.IGNORECASE | re.ASCII),
    "weekly": re.compile(rf"weekly on (?P<days>[\w, ]+?) at {CLOCK}", re.IGNORECASE | re.ASCII),
    "monthly": re.compile(rf"monthly on (?P<day>last day|-?\d+) at {CLOCK}", re.IGNORECASE | re.ASCII),
    "every": re.compile(
        r"every (?P<interval>.+?)(?P<from_completion> from completion)?(?: anchored at (?P<anchor>\S+))?",
        re.IGNORECASE | re.ASCII,
    ),
    "once": re.compile(r"once at (?P<at>\S+(?: \S+)?)", re.IGNORECASE | re.ASCII),
    "after_jobs": re.compile(r"after (?P<jobs>.+?)(?: on (?P<on>success|finish))?", re.IGNORECASE | re.DOTALL),
    "manual": re.compile(r"manual", re.IGNORECASE),
    "on_activity": re.compile(
        r"on activity after (?P<interval>.+?)(?: timeout (?P<timeout>.+?))?(?: ttl (?P<task_ttl>.+?))?"
        r"(?: retries (?P<max_retries>\d{1,9}))?(?: dimensions (?P<dimensions>\d))?",
        re.IGNORECASE | re.ASCII,
    ),
    "cron": re.compile(r"(?:cron )?(?P<expression>.+)", re.IGNORECASE | re.DOTALL),
}
WORDS = {"daily", "weekly", "monthly", "every", "once", "after", "manual", "on"}
EXAMPLES = (
    '"every 1h30m", "daily at 03:00", "weekly on mon,fri at 09:00", "monthly on 1 at 03:00" or "cron 0 9 * * 1-5"'
)
ZONE = re.compile(r"\s+@\s+(\S+)$")
JITTER = re.compile(r"\s+with jitter\s+([^@]+)$", re.IGNORECASE)


def parse_fields(text: str) -> dict[str, Any]:
    """The data of one line; InvalidSchedule shows the forms when it has none of them."""
    line = text.strip()
    word = line.partition(" ")[0].lower()
    kind = {"after": "after_jobs", "on": "on_activity"}.get(word, word) if word in WORDS else "cron"
    if kind == "cron" and word != "cron" and re.fullmatch(r"[a-z]{4,}.*", word, re.ASCII):
        raise InvalidSchedule(f'"{text}" is no schedule: write one like {EXAMPLES}.')
    options: dict[str, Any] = {}
    if kind not in ("after_jobs", "manual", "on_activity"):
        line = _take(ZONE, line, "timezone", options)
        line = _take(JITTER, line, "jitter", options)
    match = FORMS[kind].fullmatch(line)
    if match is None:
        raise InvalidSchedule(f'"{text}" is no schedule: write one like {EXAMPLES}.')
    if "jitter" in options:
        options["jitter"] = plain_seconds(parse_duration(options["jitter"], field="jitter"))
    found = {name: value for name, value in match.groupdict().items() if value is not None}
    return {"type": kind, **_converted(found), **options}


def _take(suffix: re.Pattern[str], line: str, name: str, options: dict[str, Any]) -> str:
    match = suffix.search(line)
    if match is None:
        return line
    options[name] = match[1]
    return line[: match.start()]


def _converted(found: dict[str, str]) -> dict[str, Any]:
    return {name: READERS.get(name, str)(value) for name, value in found.items()}


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",")]


def _day(text: str) -> int:
    return -1 if text.lower() == "last day" else int(text)


READERS: dict[str, Any] = {
    "hour": int,
    "minute": int,
    "second": int,
    "day": _day,
    "days": _names,
    "jobs": _names,
    "on": str.lower,
    "from_completion": bool,
    "max_retries": int,
    "dimensions": int,
}
