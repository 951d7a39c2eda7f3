"""A cron expression as a pattern of wall times. croniter expands the fields; which days follow is decided here."""

from collections.abc import Collection
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from scheduler.exceptions import InvalidSchedule
from scheduler.schedules.cron_fields import DAY, FIELDS, LAST, WEEKDAY, Parts, read, split
from scheduler.schedules.pattern import CalendarDays, DayTimes, Pattern

HORIZON_YEARS = 50
FIRST_YEAR = 2001
"""Where the search for a date begins. Any year does: every shape a month can have comes within the horizon."""


class CompiledCron(NamedTuple):
    """What an expression means: its pattern, which daylight-saving rule it follows, its fields for notes."""

    pattern: Pattern
    fixed: bool
    either_day: bool
    parts: tuple[Parts, ...]


@dataclass(frozen=True, slots=True)
class DayRule:
    """Days by number and by weekday. `either` unites the two fields, else both must agree (cronie's star rule)."""

    numbers: frozenset[int]
    day: Parts
    weekdays: frozenset[int]
    weekday: Parts
    either: bool

    def __call__(self, first: int, length: int) -> Collection[int]:
        by_number, by_weekday = self._by_number(first, length), self._by_weekday(first, length)
        return by_number | by_weekday if self.either else by_number & by_weekday

    def _by_number(self, first: int, length: int) -> set[int]:
        days = {day for day in self.numbers if day <= length}
        if self.day.last_day:
            days.add(length)
        return days | {_nearest_working_day(day, first, length) for day in self.day.nearest}

    def _by_weekday(self, first: int, length: int) -> set[int]:
        days = {day for day in range(1, length + 1) if (first + day - 1) % 7 in self.weekdays}
        for weekday, place in self.weekday.nth:
            such = range(1 + (weekday - first) % 7, length + 1, 7)
            if place == LAST:
                days.add(such[-1])
            elif place <= len(such):
                days.add(such[place - 1])
        return days


@lru_cache(maxsize=2048)
def compile_cron(expression: str) -> CompiledCron:
    """Read an expression; InvalidSchedule when it is outside the dialect or can never fire."""
    parts = tuple(read(field, text) for field, text in zip(FIELDS, split(expression), strict=True))
    seconds, minutes, hours, numbers, months, weekdays = _expand(expression, parts)
    day, weekday = parts[3], parts[5]
    either = not (day.starred or weekday.starred)
    days = CalendarDays(DayRule(numbers, day, weekdays, weekday, either), months)
    _refuse_never(expression, days)
    fixed = not any(part.starred for part in parts[:3])
    return CompiledCron(Pattern(days, DayTimes(hours, minutes, seconds)), fixed, either, parts)


def _expand(expression: str, parts: tuple[Parts, ...]) -> list[frozenset[int]]:
    """The numbers of the six fields, seconds first. A field of specials only has none."""
    from croniter import croniter  # here, since most projects start without needing it

    try:
        expanded, _ = croniter.expand(" ".join(part.plain or "*" for part in parts), second_at_beginning=True)
    except ValueError as error:
        raise InvalidSchedule(
            f'cron expression "{expression}" is not understood: {error}', field="expression"
        ) from error
    in_order = [expanded[-1], *expanded[:-1]]
    return [
        _numbers(values, field.low, 6 if field is WEEKDAY else field.high) if part.plain else frozenset()
        for field, part, values in zip(FIELDS, parts, in_order, strict=True)
    ]


def _numbers(values: list[int | str], low: int, high: int) -> frozenset[int]:
    if "*" in values:
        return frozenset(range(low, high + 1))
    return frozenset(int(value) for value in values)


def _refuse_never(expression: str, days: CalendarDays) -> None:
    years = range(FIRST_YEAR, FIRST_YEAR + HORIZON_YEARS)
    if not any(days.of(year, month) for year in years for month in range(1, 13)):
        raise InvalidSchedule(
            f'cron expression "{expression}" never fires: no such date comes within {HORIZON_YEARS} years. '
            "Write a day the month has.",
            field=DAY.name,
        )


def _nearest_working_day(day: int, first: int, length: int) -> int:
    """The Monday to Friday nearest a day, never in another month (Quartz `W`)."""
    weekday = (first + day - 1) % 7
    if weekday == 6:
        return day - 1 if day > 1 else day + 2
    if weekday == 0:
        return day + 1 if day < length else day - 2
    return day
