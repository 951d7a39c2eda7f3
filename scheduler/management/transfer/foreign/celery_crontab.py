"""Celery's crontab: its fields, by its rules, as a schedule of ours.

The rules are those of `celery.schedules.crontab_parser` 5.7: ranges wrap (`fri-mon`, `11-2`), Sunday is 0 only, both
day fields must match, and names may stand in every field.
"""

import re
from collections.abc import Iterable
from typing import Any, NamedTuple

from scheduler.exceptions import InvalidSchedule
from scheduler.management.transfer.foreign.day_fields import both_days, in_field, month_text, times_text, told_days
from scheduler.safetext import shown
from scheduler.schedules import Cron
from scheduler.schedules.cron_fields import DAY, HOUR, MINUTE, MONTH, MONTHS, WEEKDAY, WEEKDAYS, Field

FIELDS = {"minute": MINUTE, "hour": HOUR, "day_of_month": DAY, "month_of_year": MONTH, "day_of_week": WEEKDAY}
PIECE = re.compile(r"(?:(?P<star>\*)|(?P<start>\w+)(?:-(?P<end>\w+))?)(?:/(?P<step>\d+))?", re.ASCII)
NUMBERS = {name: number for number, name in enumerate(WEEKDAYS)} | {name: at for at, name in enumerate(MONTHS, 1)}


class Translated(NamedTuple):
    """A schedule, what is to be known of it, and whether it ran there at all."""

    schedule: Cron
    notes: tuple[str, ...] = ()
    ran: bool = True


def translated(fields: dict[str, Any], zone: str) -> Translated:
    """Return what Celery's fields mean; raises InvalidSchedule where no schedule of ours means the same.

    `fields` are texts, numbers or collections by Celery's names; one that is missing is `*`.
    """
    given = {name: fields.get(name, "*") for name in FIELDS}
    try:
        values, notes = _values(given, lenient=False), []
    except InvalidSchedule as error:
        try:
            values = _values(given, lenient=True)
        except InvalidSchedule:
            raise error from None
        notes = [f"Celery has never run this ({str(error).rstrip('.')}); it is imported disabled, as it was meant"]
    cron = Cron(_expression(values, given), timezone=zone)
    return Translated(cron, (*notes, *_notes(given)), ran=not notes)


def _values(given: dict[str, Any], *, lenient: bool) -> dict[str, set[int]]:
    """Return the numbers of each field. `lenient` also reads what people write and Celery does not: Sunday as 7, blanks
    after commas, and the brackets that a form leaves of a list."""
    return {name: _numbers(FIELDS[name], text, lenient=lenient) for name, text in given.items()}


def _expression(values: dict[str, set[int]], given: dict[str, Any]) -> str:
    days, weekdays = values["day_of_month"], values["day_of_week"]
    fields = both_days(days, weekdays)
    if fields is None:
        raise InvalidSchedule(f"With Celery {told_days(days, weekdays)}", field="day_of_month")
    starred = str(given["minute"]).startswith("*"), str(given["hour"]).startswith("*")
    times = times_text(values["minute"], values["hour"], starred)
    return f"{times} {fields[0]} {month_text(values['month_of_year'])} {fields[1]}"


def _notes(given: dict[str, Any]) -> Iterable[str]:
    if str(given["minute"]).strip() == "*" and str(given["hour"]).strip() != "*":
        yield "minute is *: it is due every minute of its hours, 60 times each, as it was there"


def _numbers(field: Field, given: Any, *, lenient: bool) -> set[int]:
    """Return the numbers of a field, of whatever type it was given."""
    is_week = field is WEEKDAY
    allowed = range(8) if lenient and is_week else in_field(field)
    if isinstance(given, str):
        text = re.sub(r"[][(){}'\"\s]", "", given) if lenient else given
        found = {number for piece in text.split(",") for number in _of_piece(field, piece, allowed)}
    else:
        found = set(_whole_numbers(field, given))
    for number in found:
        _check(field, number, allowed)
    return {number % 7 for number in found} if is_week else found


def _whole_numbers(field: Field, given: Any) -> list[int]:
    numbers = [given] if isinstance(given, int) else given
    if not isinstance(numbers, Iterable):
        raise InvalidSchedule(f"{field.label} is {shown(given)}, which Celery does not read.", field=field.name)
    found = list(numbers)
    if not found or not all(isinstance(one, int) and not isinstance(one, bool) for one in found):
        raise InvalidSchedule(f"{field.label} is {shown(given)}, which Celery does not read.", field=field.name)
    return found


def _of_piece(field: Field, piece: str, allowed: range) -> list[int]:
    found = PIECE.fullmatch(piece.strip() if piece.strip().isdecimal() else piece)
    step = int(found["step"] or 1) if found else 0
    if found is None or not step or (found["step"] and not (found["star"] or found["end"])):
        raise InvalidSchedule(f"{field.label} field: Celery does not read {shown(piece)}.", field=field.name)
    if found["star"]:
        return list(allowed)[::step]
    first = _number(field, found["start"], allowed)
    last = first if found["end"] is None else _number(field, found["end"], allowed)
    if last >= first:
        return list(range(first, last + 1))[::step]
    return [*range(first, allowed.stop), *range(allowed.start, last + 1)][::step]


def _number(field: Field, text: str, allowed: range) -> int:
    number = int(text) if text.isdecimal() else NUMBERS.get(text[:3].lower())
    if number is None:
        raise InvalidSchedule(f"{field.label} field: Celery does not read {shown(text)}.", field=field.name)
    _check(field, number, allowed)
    return number


def _check(field: Field, number: int, allowed: range) -> None:
    if number not in allowed:
        span = f"{allowed.start} to {allowed.stop - 1}"
        raise InvalidSchedule(f"{field.label} field: Celery takes {span}, not {number}.", field=field.name)
