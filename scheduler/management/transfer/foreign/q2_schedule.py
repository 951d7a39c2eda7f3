"""django-q2's kinds of schedule, as schedules of ours; those that drift there have none."""

from datetime import datetime, timedelta
from typing import Any

from scheduler.exceptions import InvalidSchedule
from scheduler.schedules import Cron, Every, Schedule, from_dict
from scheduler.schedules.wallclock import zone_of

MONTHS = {"M": 1, "BM": 2, "Q": 3}
"""How many months apart."""
HALF_A_YEAR = timedelta(days=182)
SAFE_DAY = 28
"""The last day that every month has."""
SPECIAL = set("l#whr")


def schedule_of(row: dict[str, Any], next_run: datetime | None, zone: str) -> Schedule:
    """Return the schedule of a row; raises InvalidSchedule where none means the same.

    `zone` is that of the project, by whose wall clock days, weeks and months are counted there.
    """
    kind = row["schedule_type"]
    if kind == "C":
        return _cron(str(row.get("cron") or ""), zone)
    if next_run is None:
        raise InvalidSchedule("It has no next run.")
    if kind == "O":
        return from_dict({"type": "once", "at": next_run.isoformat()})
    if kind in ("I", "H"):
        return Every(minutes=60 if kind == "H" else int(row.get("minutes") or 1), anchor=next_run)
    return _by_calendar(kind, next_run, next_run.astimezone(zone_of(zone)), zone)


def _by_calendar(kind: str, next_run: datetime, wall: datetime, zone: str) -> Schedule:
    if kind == "BW":
        return _every_two_weeks(next_run, zone)
    if kind == "Y":
        _refuse_drift(next_run, "a 29 February goes to the 28th")
        return _at(next_run, f"{next_run.day} {next_run.month} *", "UTC")
    if kind in MONTHS:
        return _monthly(kind, next_run, wall, zone)
    if kind not in ("D", "W"):
        raise InvalidSchedule(f"The type {kind!r} is unknown.")
    return _at(wall, "* * *" if kind == "D" else f"* * {wall.isoweekday() % 7}", zone)


def _at(wall: datetime, days: str, zone: str) -> Cron:
    seconds = f"{wall.second} " if wall.second else ""
    return Cron(f"{seconds}{wall.minute} {wall.hour} {days}", timezone=zone)


def _every_two_weeks(next_run: datetime, zone: str) -> Every:
    if not _is_steady(next_run, zone):
        raise InvalidSchedule(
            f"It is due every two weeks by the clock of {zone}, which changes; no schedule here is. Make it weekly, "
            "and let its task return every other week."
        )
    return Every(days=14, anchor=next_run)


def _monthly(kind: str, next_run: datetime, wall: datetime, zone: str) -> Cron:
    """Return the months of a row. Their lengths are counted in UTC there, so the day must be the same one in both."""
    _refuse_drift(wall, "a month without that day moves it to an earlier one for good")
    offsets = {(next_run + timedelta(days=days)).astimezone(zone_of(zone)).utcoffset() for days in range(0, 366, 7)}
    on_the_day = wall.replace(tzinfo=None)
    if any((on_the_day - (offset or timedelta())).date() != on_the_day.date() for offset in offsets):
        raise InvalidSchedule(
            f"At {wall:%H:%M} in {zone} it is another day in UTC, in which django-q2 counts the months: its day moves. "
            "Make a job with Monthly."
        )
    apart = MONTHS[kind]
    months = (
        "*"
        if apart == 1
        else ",".join(map(str, sorted((wall.month - 1 + step) % 12 + 1 for step in range(0, 12, apart))))
    )
    return _at(wall, f"{wall.day} {months} *", zone)


def _refuse_drift(wall: datetime, why: str) -> None:
    if wall.day > SAFE_DAY:
        raise InvalidSchedule(f"It is due on the {wall.day}th, and {why}. Make a job with Monthly; day=-1 is the last.")


def _is_steady(at: datetime, zone: str) -> bool:
    """Whether the clocks of a zone have one offset the whole year."""
    place = zone_of(zone)
    return at.astimezone(place).utcoffset() == (at + HALF_A_YEAR).astimezone(place).utcoffset()


def _cron(text: str, zone: str) -> Cron:
    """Return a cron of croniter: seconds last, and either of the day fields, also where one begins with `*`."""
    parts = text.split()
    if len(parts) == 6:
        parts = [parts[-1], *parts[:-1]]
    if len(parts) not in (5, 6):
        return Cron(text, timezone=zone)  # a macro, or refused in our words
    day, weekday = parts[-3], parts[-1]
    if day in "*?" or weekday in "*?":
        return Cron(" ".join(parts), timezone=zone)
    if SPECIAL & set(f"{day}{_without_names(weekday)}".lower()):
        raise InvalidSchedule(f"In {text!r} croniter combines both day fields by rules of its own: make two jobs.")
    parts[-3], parts[-1] = _unstarred(day, "1-31"), _unstarred(weekday, "0-6")
    return Cron(" ".join(parts), timezone=zone)


def _unstarred(field: str, span: str) -> str:
    """Return a field without the `*` at its beginning, which means that both fields must match here."""
    return span + field[1:] if field.startswith("*") else field


def _without_names(field: str) -> str:
    """Return a weekday field without names of days, which have letters of their own."""
    return "" if field.replace(",", "").replace("-", "").isalpha() else field
