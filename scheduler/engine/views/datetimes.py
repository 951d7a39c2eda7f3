"""Moments: instants as people write and read them, in the project's time zone."""

import re
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from django.conf import settings
from django.utils.formats import get_format
from django.utils.translation import gettext as _

from scheduler.exceptions import InvalidOption, InvalidSchedule
from scheduler.safetext import shown
from scheduler.schedules.base import as_utc
from scheduler.schedules.duration import length_words, parse_duration
from scheduler.schedules.wallclock import instant_of, zone_of

DAY, MINUTE = timedelta(days=1), timedelta(minutes=1)
DAYS = {"yesterday": -1, "today": 0, "tomorrow": 1}
TIME_OF_DAY = re.compile(r"(?:(yesterday|today|tomorrow)\s+)?(\d{1,2}):(\d{2})(?::(\d{2}))?", re.IGNORECASE)
AGO = re.compile(r"(?:an?\s+)?(.+?)\s+ago", re.IGNORECASE)
"""A length of time, as schedules have it, before now; “an hour” is one."""
SAID = re.compile(r"\b(\d{4}-\d\d-\d\d \d\d:\d\d(?::\d\d)?) ([A-Z]{2,6}|[+-]\d\d(?:\d\d)?)\b")
"""An instant in a sentence, as `said` writes it."""
FIRST_YEAR, LAST_YEAR = 1970, 9000
LONGEST_MOMENT = 100
"""Characters: nothing longer is a date and time."""
FIRST, LAST = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
WHAT_TO_WRITE = (
    'write one like "02:00", "yesterday 02:00", "5 minutes ago", "2026-03-29 02:00" or "2026-03-29T02:00:00+00:00"'
)


def parse_moment(text: str, now: datetime, zone: ZoneInfo | None = None) -> datetime:
    """Return the instant (aware, UTC) that a person means; raises InvalidOption that says what to write.

    Understood are `now`, lengths of time such as `5 minutes ago`, ISO 8601 dates with a time, with or without an
    offset, and times of day: `02:00` is the latest one not after `now`, `yesterday 02:00`, `today 02:00` and
    `tomorrow 02:00` name the day. Without an offset it is a wall time of `zone` (default: the project's TIME_ZONE): one
    that the clock skips is the first instant after the gap, one that happens twice its first pass.
    """
    zone = zone or project_zone()
    words = text.strip() if len(text) <= LONGEST_MOMENT else ""
    if words.lower() == "now":
        return now
    try:
        moment = _ago(words, now) or _time_of_day(words, now, zone) or _date_and_time(words, zone)
    except (InvalidSchedule, ValueError, OverflowError):
        moment = None
    if moment is None or not FIRST_YEAR <= moment.year <= LAST_YEAR:
        raise InvalidOption(f"{shown(text)} is no date and time: {WHAT_TO_WRITE}.")
    return moment


def _ago(words: str, now: datetime) -> datetime | None:
    match = AGO.fullmatch(words)
    if match is None:
        return None
    length = parse_duration(match[1])
    at = now - length
    return at if length < MINUTE else at.replace(second=0, microsecond=0)  # the minute is meant, as in 02:00


def _time_of_day(words: str, now: datetime, zone: ZoneInfo) -> datetime | None:
    match = TIME_OF_DAY.fullmatch(words)
    if match is None:
        return None
    day, clock = match[1], time(int(match[2]), int(match[3]), int(match[4] or 0))
    today = now.astimezone(zone).date()
    if day:
        return _instant_at(today + DAYS[day.lower()] * DAY, clock, zone)
    at = _instant_at(today, clock, zone)
    return at if at <= now else _instant_at(today - DAY, clock, zone)


def _date_and_time(words: str, zone: ZoneInfo) -> datetime | None:
    if ":" not in words and "T" not in words.upper():
        return None  # a day alone: its midnight is hardly what was meant
    at = datetime.fromisoformat(words)
    return _instant_at(at.date(), at.time(), zone) if at.tzinfo is None else at.astimezone(UTC)


def _instant_at(day: date, clock: time, zone: ZoneInfo) -> datetime:
    return instant_of(zone, datetime.combine(day, clock)).replace(tzinfo=UTC)


def project_zone() -> ZoneInfo:
    """Return the time zone of the project."""
    return zone_of(settings.TIME_ZONE)


def zone_of_schedule(schedule: object) -> ZoneInfo:
    """Return the time zone of a schedule, or the project's if it names none or cannot be read."""
    name = getattr(schedule, "timezone", None)
    return zone_of(name) if name else project_zone()


def local(at: datetime, zone: ZoneInfo | None = None) -> datetime:
    """Return an instant by the clocks of `zone` (default: the project's), or in UTC outside the years 1 to 9999."""
    try:
        return at.astimezone(zone or project_zone())
    except OverflowError:
        return as_utc(at)


def shifted(at: datetime, by: timedelta) -> datetime:
    """Return an instant moved by a length of time, no further than datetimes go."""
    try:
        return at + by
    except OverflowError:
        return LAST if by > timedelta(0) else FIRST


def said(at: datetime | None, zone: ZoneInfo | None = None) -> str:
    """Return an instant for a sentence, in `zone` (default: the project's) and with its name; seconds if not zero."""
    if at is None:
        return _("an unknown time")
    clock = local(at, zone)
    return f"{clock:%Y-%m-%d %H:%M}{f':{clock:%S}' if clock.second else ''} {clock:%Z}"


def lasted(length: timedelta | None, *, parts: int = 2) -> str:
    """Return a length as `length_words` says it, with the decimal sign of the language: 1.35 s, in German 1,35 s."""
    return decimal(length_words(length, parts=parts))


def decimal(words: str) -> str:
    """Return words with a number in them as the language writes it."""
    return words.replace(".", str(get_format("DECIMAL_SEPARATOR")))


def heard(wall: str, abbreviation: str, zone: ZoneInfo | None = None) -> datetime | None:
    """Return the instant that `said` wrote as `wall` and `abbreviation`, such as `2026-10-25 02:30` and `CET`.

    None if it wrote no such thing by the clocks of the project, of `zone` or of UTC, or if the words fit two instants:
    CST is a time in Chicago and another in Shanghai.
    """
    at = datetime.fromisoformat(wall)
    places = (project_zone(), zone or UTC, UTC)
    found = {moment for place in places if (moment := _first_pass(at.replace(tzinfo=place), abbreviation))}
    return found.pop() if len(found) == 1 else None


def _first_pass(at: datetime, abbreviation: str) -> datetime | None:
    passes = (at.replace(fold=fold) for fold in (0, 1))
    return next((as_utc(moment) for moment in passes if f"{moment:%Z}" == abbreviation), None)
