"""Moments: instants as people write and read them, in the project's time zone."""

import re
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from django.conf import settings
from django.utils.translation import gettext as _

from scheduler.exceptions import InvalidOption
from scheduler.schedules.base import as_utc
from scheduler.schedules.duration import format_duration
from scheduler.schedules.wallclock import instant_of, zone_of

DAY = timedelta(days=1)
DAYS = {"yesterday": -1, "today": 0, "tomorrow": 1}
TIME_OF_DAY = re.compile(r"(?:(yesterday|today|tomorrow)\s+)?(\d{1,2}):(\d{2})(?::(\d{2}))?", re.IGNORECASE)
SAID = re.compile(r"\b(\d{4}-\d\d-\d\d \d\d:\d\d(?::\d\d)?) ([A-Z]{2,6}|[+-]\d\d(?:\d\d)?)\b")
"""An instant in a sentence, as `said` writes it."""
FIRST_YEAR, LAST_YEAR = 1970, 9000
FIRST, LAST = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
WHAT_TO_WRITE = 'write one like "02:00", "yesterday 02:00", "2026-03-29 02:00" or "2026-03-29T02:00:00+00:00"'


def parse_moment(text: str, now: datetime) -> datetime:
    """Return the instant (aware, UTC) that a person means; raises InvalidOption that says what to write.

    Understood are `now`, ISO 8601 dates with a time, with or without an offset, and times of day: `02:00` is the
    latest one not after `now`, `yesterday 02:00`, `today 02:00` and `tomorrow 02:00` name the day. Without an offset
    it is a wall time of the project's TIME_ZONE: one that the clock skips is the first instant after the gap, one that
    happens twice its first pass.
    """
    words = text.strip()
    if words.lower() == "now":
        return now
    try:
        moment = _time_of_day(words, now) or _date_and_time(words)
    except (ValueError, OverflowError):
        moment = None
    if moment is None or not FIRST_YEAR <= moment.year <= LAST_YEAR:
        raise InvalidOption(f"{text!r} is no date and time: {WHAT_TO_WRITE}.")
    return moment


def _time_of_day(words: str, now: datetime) -> datetime | None:
    match = TIME_OF_DAY.fullmatch(words)
    if match is None:
        return None
    day, clock = match[1], time(int(match[2]), int(match[3]), int(match[4] or 0))
    today = now.astimezone(project_zone()).date()
    if day:
        return _instant_at(today + DAYS[day.lower()] * DAY, clock)
    at = _instant_at(today, clock)
    return at if at <= now else _instant_at(today - DAY, clock)


def _date_and_time(words: str) -> datetime | None:
    if ":" not in words and "T" not in words.upper():
        return None  # a day alone: nobody asks about its midnight by accident
    at = datetime.fromisoformat(words)
    return _instant_at(at.date(), at.time()) if at.tzinfo is None else at.astimezone(UTC)


def _instant_at(day: date, clock: time) -> datetime:
    return instant_of(project_zone(), datetime.combine(day, clock)).replace(tzinfo=UTC)


def project_zone() -> ZoneInfo:
    """Return the time zone of the project."""
    return zone_of(settings.TIME_ZONE)


def local(at: datetime) -> datetime:
    """Return an instant by the clocks of the project; in UTC where those would show the year 0 or 10000."""
    try:
        return at.astimezone(project_zone())
    except OverflowError:
        return as_utc(at)


def shifted(at: datetime, by: timedelta) -> datetime:
    """Return an instant moved by a length of time, no further than datetimes go."""
    try:
        return at + by
    except OverflowError:
        return LAST if by > timedelta(0) else FIRST


def said(at: datetime | None) -> str:
    """Return an instant for a sentence, in the project's time zone, the zone named; seconds only when there are any."""
    if at is None:
        return _("an unknown time")
    clock = local(at)
    return f"{clock:%Y-%m-%d %H:%M}{f':{clock:%S}' if clock.second else ''} {clock:%Z}"


def heard(wall: str, zone: str) -> datetime | None:
    """Return the instant that `said` said in these words, as `2026-10-25 02:30` and `CET`; None when it did not."""
    at = datetime.fromisoformat(wall)
    passes = (at.replace(tzinfo=project_zone(), fold=fold) for fold in (0, 1))
    found = next(
        (moment for moment in passes if f"{moment:%Z}" == zone), at.replace(tzinfo=UTC) if zone == "UTC" else None
    )
    return None if found is None else as_utc(found)


def lasted(length: timedelta | None) -> str:
    """Return a duration for a sentence, such as 1h30m or 0.25s; what is longer than ten seconds is rounded to one."""
    if length is None:
        return _("an unknown time")
    exact = abs(length.total_seconds())
    return format_duration(timedelta(seconds=round(exact, 3 if exact < 10 else 0)))
