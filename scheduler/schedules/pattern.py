"""Which wall-clock times match: the calendar arithmetic all calendar kinds share. No time zones here.

A pattern is a set of naive, whole-second wall times: the days that match, times the times of day that match.
What days match depends on a month's number, its length and the weekday of its first day only, so 28 month shapes
tell everything and a century is counted as fast as a year.
"""

from bisect import bisect_left, bisect_right
from calendar import monthrange
from collections.abc import Callable, Collection, Iterator
from datetime import MAXYEAR, MINYEAR, date, datetime, time, timedelta

DAY = timedelta(days=1)
ALL_MONTHS = frozenset(range(1, 13))

DaysOfMonth = Callable[[int, int], Collection[int]]
"""(weekday of the first, Sunday 0; length) -> the days of such a month that match."""


class DayTimes:
    """The times of day that match: hours x minutes x seconds, as seconds since midnight."""

    __slots__ = ("_hours", "_within", "per_day")

    def __init__(self, hours: Collection[int], minutes: Collection[int], seconds: Collection[int] = (0,)) -> None:
        self._hours = sorted(hours)
        self._within = sorted(minute * 60 + second for minute in minutes for second in seconds)
        self.per_day = len(self._hours) * len(self._within)

    def first_from(self, second: int) -> int | None:
        """The first match at or after `second`."""
        hour, rest = divmod(second, 3600)
        at = bisect_left(self._hours, hour)
        if at < len(self._hours) and self._hours[at] == hour:
            inner = bisect_left(self._within, rest)
            if inner < len(self._within):
                return hour * 3600 + self._within[inner]
            at += 1
        return self._hours[at] * 3600 + self._within[0] if at < len(self._hours) else None

    def last_before(self, second: int) -> int | None:
        """The last match before `second`."""
        hour, rest = divmod(second, 3600)
        at = bisect_left(self._hours, hour)
        if at < len(self._hours) and self._hours[at] == hour:
            inner = bisect_left(self._within, rest)
            if inner:
                return hour * 3600 + self._within[inner - 1]
        return self._hours[at - 1] * 3600 + self._within[-1] if at else None

    def count_before(self, second: int) -> int:
        """How many matches lie before `second`."""
        hour, rest = divmod(second, 3600)
        at = bisect_left(self._hours, hour)
        inside = at < len(self._hours) and self._hours[at] == hour
        return at * len(self._within) + (bisect_left(self._within, rest) if inside else 0)


class CalendarDays:
    """The dates that match: a rule for the days of a month, in some months."""

    __slots__ = ("_known", "_months", "_rule")

    def __init__(self, rule: DaysOfMonth, months: Collection[int] = ALL_MONTHS) -> None:
        self._rule = rule
        self._months = frozenset(months)
        self._known: dict[tuple[int, int], list[int]] = {}

    def of(self, year: int, month: int) -> list[int]:
        """The matching days of one month, ascending."""
        if month not in self._months:
            return []
        shape = monthrange(year, month)
        days = self._known.get(shape)
        if days is None:
            # Two threads may both compute it: they store the same answer.
            days = self._known[shape] = sorted(self._rule((shape[0] + 1) % 7, shape[1]))
        return days

    def first_from(self, day: date) -> date | None:
        """The first match on or after `day`."""
        year, month, number = day.year, day.month, day.day
        while year <= MAXYEAR:
            days = self.of(year, month)
            at = bisect_left(days, number)
            if at < len(days):
                return date(year, month, days[at])
            year, month, number = (year, month + 1, 1) if month < 12 else (year + 1, 1, 1)
        return None

    def last_until(self, day: date) -> date | None:
        """The last match on or before `day`."""
        year, month, number = day.year, day.month, day.day
        while year >= MINYEAR:
            days = self.of(year, month)
            at = bisect_right(days, number)
            if at:
                return date(year, month, days[at - 1])
            year, month, number = (year, month - 1, 31) if month > 1 else (year - 1, 12, 31)
        return None

    def count(self, start: date, end: date) -> int:
        """How many matches lie in `start <= day < end`."""
        total = sum(len(self.of(year, month)) for year, month in _months(start, end))
        return (
            total
            - bisect_left(self.of(start.year, start.month), start.day)
            + bisect_left(self.of(end.year, end.month), end.day)
        )


class Pattern:
    """A set of wall times: every matching time of every matching day."""

    __slots__ = ("days", "times")

    def __init__(self, days: CalendarDays, times: DayTimes) -> None:
        self.days = days
        self.times = times

    def first_from(self, wall: datetime) -> datetime | None:
        """The first match at or after a whole-second wall time; None past the year 9999."""
        day = wall.date()
        found = self.days.first_from(day)
        if found == day:
            second = self.times.first_from(_second_of_day(wall))
            if second is not None:
                return _at(day, second)
            found = self.days.first_from(day + DAY)
        if found is None:
            return None
        return _at(found, self.times.first_from(0))

    def last_before(self, wall: datetime) -> datetime | None:
        """The last match before a whole-second wall time; None before the year 1."""
        day = wall.date()
        found = self.days.last_until(day)
        if found == day:
            second = self.times.last_before(_second_of_day(wall))
            if second is not None:
                return _at(day, second)
            found = self.days.last_until(day - DAY)
        if found is None:
            return None
        return _at(found, self.times.last_before(86_400))

    def count(self, start: datetime, end: datetime) -> int:
        """How many matches lie in `start <= wall < end`: days are counted by month, times by rank."""
        if start >= end:
            return 0
        whole = self.days.count(start.date(), end.date()) * self.times.per_day
        return whole - self._count_within_day(start) + self._count_within_day(end)

    def _count_within_day(self, wall: datetime) -> int:
        if wall.day not in self.days.of(wall.year, wall.month):
            return 0
        return self.times.count_before(_second_of_day(wall))


def _months(start: date, end: date) -> Iterator[tuple[int, int]]:
    """The months from that of `start` up to, not including, that of `end`."""
    for number in range(start.year * 12 + start.month - 1, end.year * 12 + end.month - 1):
        year, month = divmod(number, 12)
        yield year, month + 1


def _second_of_day(wall: datetime) -> int:
    return wall.hour * 3600 + wall.minute * 60 + wall.second


def _at(day: date, second: int | None) -> datetime | None:
    return None if second is None else datetime.combine(day, time(second // 3600, second // 60 % 60, second % 60))
