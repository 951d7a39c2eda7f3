"""DailyAt, Weekly, Monthly: fixed times of day on simple days."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import timedelta
from functools import lru_cache
from itertools import islice
from typing import ClassVar

from scheduler.exceptions import InvalidSchedule
from scheduler.safetext import shown
from scheduler.schedules.base import NO_TIME, Translate
from scheduler.schedules.cron_fields import WEEKDAYS
from scheduler.schedules.duration import parse_duration
from scheduler.schedules.every import JITTER
from scheduler.schedules.fields import Clock, Field, Several, Whole, clock
from scheduler.schedules.fields import gettext_noop as _
from scheduler.schedules.pattern import CalendarDays, DaysOfMonth, DayTimes, Pattern
from scheduler.schedules.timeline import FixedTimeline
from scheduler.schedules.wall_schedule import ZONE, WallSchedule, checked_zone
from scheduler.schedules.wallclock import zone_of

LAST_DAY = -1
MOST_DAYS = 100
"""Days that a `Weekly` may name, some of them twice."""
WEEK_ORDER = (*WEEKDAYS[1:], WEEKDAYS[0])
UPPER = {"hour": 23, "minute": 59, "second": 59}
CLOCK = r"(?P<hour>\d{1,2}):(?P<minute>\d{2})(?::(?P<second>\d{2}))?"
TIME = Clock("time", _("Time"), _("Such as 03:00."), missing=_("Write a time such as 03:00."), to=int)


def _day(word: str) -> int:
    return LAST_DAY if word.lower() == "last day" else int(word)


class _FixedTime(WallSchedule):
    """One wall time on some days. Lost in a gap it runs at the first instant after, double it runs the first time."""

    __slots__ = ()

    always_told: ClassVar[Collection[str]] = ("day", "hour", "minute")

    hour: int
    minute: int
    second: int

    @property
    def is_fixed_time(self) -> bool:
        return True

    def _check(self) -> None:
        for name, upper in UPPER.items():
            checked_number(getattr(self, name), 0, upper, field=name)
        object.__setattr__(self, "timezone", checked_zone(self.timezone))
        object.__setattr__(self, "jitter", parse_duration(self.jitter, field="jitter"))

    @property
    def _clock(self) -> str:
        return clock(self.hour, self.minute, self.second)


@dataclass(frozen=True, slots=True)
class DailyAt(_FixedTime):
    """Every day at one wall time of `timezone`, 03:00 unless told otherwise. `jitter`: seconds, timedelta or text."""

    kind: ClassVar[str] = "daily"
    label: ClassVar[str] = _("daily")
    line: ClassVar[str] = rf"daily at {CLOCK}"
    fields: ClassVar[tuple[Field, ...]] = (TIME, ZONE, JITTER)

    hour: int = 3
    minute: int = 0
    second: int = 0
    timezone: str | None = None
    jitter: timedelta = NO_TIME

    def __post_init__(self) -> None:
        self._check()

    def _timeline(self) -> FixedTimeline:
        return _daily(self.hour, self.minute, self.second, self._zone_name)

    def _words(self, _: Translate) -> str:
        return self._in_zone(_("every day at {time}").format(time=self._clock), _)

    def to_text(self) -> str:
        """`daily at 03:00 @ Europe/Berlin`."""
        return f"daily at {self._clock}{self._suffix()}"

    @property
    def crontab(self) -> str:
        return f"{self.minute} {self.hour} * * *"


@dataclass(frozen=True, slots=True, init=False)
class Weekly(_FixedTime):
    """On some weekdays at one wall time: `Weekly("mon", 9)`, `Weekly(days=["mon", "fri"], hour=9)`.

    Days are names (`mon`, `Monday`) or cron's numbers, Sunday 0 or 7; they are kept as names, Monday first.
    """

    kind: ClassVar[str] = "weekly"
    label: ClassVar[str] = _("weekly")
    line: ClassVar[str] = rf"weekly on (?P<days>[\w, ]+?) at {CLOCK}"
    fields: ClassVar[tuple[Field, ...]] = (
        Several("days", _("Days"), missing=_("Choose at least one day."), choices=(
            ("mon", _("Monday")), ("tue", _("Tuesday")), ("wed", _("Wednesday")), ("thu", _("Thursday")),
            ("fri", _("Friday")), ("sat", _("Saturday")), ("sun", _("Sunday")),
        )),
        TIME,
        ZONE,
        JITTER,
    )  # fmt: skip

    days: tuple[str, ...]
    hour: int = 0
    minute: int = 0
    second: int = 0
    timezone: str | None = None
    jitter: timedelta = NO_TIME

    def __init__(
        self,
        day: str | int | None = None,
        hour: int = 0,
        minute: int = 0,
        second: int = 0,
        *,
        days: Iterable[str | int] | None = None,
        timezone: str | None = None,
        jitter: float | timedelta | str = 0,
    ) -> None:
        values = {"hour": hour, "minute": minute, "second": second, "timezone": timezone, "jitter": jitter}
        for name, value in {"days": _weekdays(day, days), **values}.items():
            object.__setattr__(self, name, value)
        self._check()

    def _timeline(self) -> FixedTimeline:
        return _weekly(self.days, self.hour, self.minute, self.second, self._zone_name)

    def _words(self, _: Translate) -> str:
        names = dict(self.fields[0].choices)
        days = ", ".join(_(names[day]) for day in self.days)
        return self._in_zone(_("every {days} at {time}").format(days=days, time=self._clock), _)

    def to_text(self) -> str:
        """`weekly on mon,fri at 09:00`."""
        return f"weekly on {','.join(self.days)} at {self._clock}{self._suffix()}"

    @property
    def crontab(self) -> str:
        return f"{self.minute} {self.hour} * * {','.join(self.days)}"


@dataclass(frozen=True, slots=True)
class Monthly(_FixedTime):
    """On one day of the month, 1 to 31 or -1 for the last, at one wall time. Months without that day are skipped."""

    kind: ClassVar[str] = "monthly"
    label: ClassVar[str] = _("monthly")
    line: ClassVar[str] = rf"monthly on (?P<day>last day|-?\d+) at {CLOCK}"
    fields: ClassVar[tuple[Field, ...]] = (
        Whole("day", _("Day of the month"), _("1 to 31, or -1 for the last day. A month without that day is left out."),
              form="month_day", missing=_("Write a day from 1 to 31, or -1 for the last day."), to=_day),
        TIME,
        ZONE,
        JITTER,
    )  # fmt: skip

    day: int = 1
    hour: int = 0
    minute: int = 0
    second: int = 0
    timezone: str | None = None
    jitter: timedelta = NO_TIME

    def __post_init__(self) -> None:
        if self.day != LAST_DAY:
            checked_number(self.day, 1, 31, field="day", hint=", or -1 for the last day")
        self._check()

    def _timeline(self) -> FixedTimeline:
        return _monthly(self.day, self.hour, self.minute, self.second, self._zone_name)

    def _words(self, _: Translate) -> str:
        if self.day == LAST_DAY:
            words = _("on the last day of every month at {time}").format(time=self._clock)
        else:
            words = _("on day {day} of every month at {time}").format(day=self.day, time=self._clock)
        return self._in_zone(words, _)

    def to_text(self) -> str:
        """`monthly on 1 at 03:00`, `monthly on last day at 03:00`."""
        day = "last day" if self.day == LAST_DAY else str(self.day)
        return f"monthly on {day} at {self._clock}{self._suffix()}"

    @property
    def crontab(self) -> str | None:
        return None if self.day == LAST_DAY else f"{self.minute} {self.hour} {self.day} * *"


def checked_number(value: object, low: int, high: int, *, field: str, hint: str = "") -> None:
    """InvalidSchedule unless a whole number in range."""
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise InvalidSchedule(
            f"{field} must be a whole number from {low} to {high}{hint}, not {shown(value)}.", field=field
        )


def _weekdays(day: str | int | None, days: Iterable[str | int] | None) -> tuple[str, ...]:
    if (day is None) == (days is None):
        raise InvalidSchedule('give either day="mon" or days=["mon", "fri"].', field="days")
    if isinstance(days, str):
        days = days.split(",")
    try:
        given = list(islice([day] if days is None else days, MOST_DAYS + 1))
    except TypeError:
        raise InvalidSchedule(f'days must be a list like ["mon", "fri"], not {shown(days)}.', field="days") from None
    if len(given) > MOST_DAYS:
        raise InvalidSchedule(f"days names more than {MOST_DAYS} days, and a week has 7.", field="days")
    chosen = {_weekday(value) for value in given}
    if not chosen:
        raise InvalidSchedule('days is empty: name at least one, like ["mon"].', field="days")
    return tuple(name for name in WEEK_ORDER if name in chosen)


def _weekday(value: object) -> str:
    if isinstance(value, str):
        word = value.strip().lower()
        name = word[:3]
        if name in WEEKDAYS and word in (name, LONG_NAMES[name]):
            return name
        value = int(word) if word in tuple("01234567") else value
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= 7:
        return WEEKDAYS[value % 7]
    raise InvalidSchedule(f"{shown(value)} is no weekday: write mon, tue, wed, thu, fri, sat or sun.", field="days")


LONG_NAMES = {
    "mon": "monday",
    "tue": "tuesday",
    "wed": "wednesday",
    "thu": "thursday",
    "fri": "friday",
    "sat": "saturday",
    "sun": "sunday",
}


@lru_cache(maxsize=1024)
def _daily(hour: int, minute: int, second: int, timezone: str) -> FixedTimeline:
    return _at(lambda first, length: range(1, length + 1), hour, minute, second, timezone)


@lru_cache(maxsize=1024)
def _weekly(days: tuple[str, ...], hour: int, minute: int, second: int, timezone: str) -> FixedTimeline:
    numbers = {WEEKDAYS.index(name) for name in days}

    def rule(first: int, length: int) -> Collection[int]:
        return [day for day in range(1, length + 1) if (first + day - 1) % 7 in numbers]

    return _at(rule, hour, minute, second, timezone)


@lru_cache(maxsize=1024)
def _monthly(day: int, hour: int, minute: int, second: int, timezone: str) -> FixedTimeline:
    def rule(first: int, length: int) -> Collection[int]:
        return [length] if day == LAST_DAY else [day] if day <= length else []

    return _at(rule, hour, minute, second, timezone)


def _at(rule: DaysOfMonth, hour: int, minute: int, second: int, timezone: str) -> FixedTimeline:
    return FixedTimeline(Pattern(CalendarDays(rule), DayTimes([hour], [minute], [second])), zone_of(timezone))
