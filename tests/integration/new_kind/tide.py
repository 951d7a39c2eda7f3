"""A kind of schedule that the product does not have, as docs/contributing/a-schedule-kind.md says to write one."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import ClassVar

from scheduler.exceptions import InvalidSchedule
from scheduler.schedules.base import NAIVE_EPOCH, Schedule, Translate
from scheduler.schedules.fields import Choice, Field, Whole, gettext_noop

PERIOD = timedelta(hours=12, minutes=25)
HARBOURS = {"husum": timedelta(0), "cuxhaven": timedelta(hours=1)}


@dataclass(frozen=True, slots=True)
class Tide(Schedule):
    """Some minutes after each high tide of a harbour."""

    kind: ClassVar[str] = "tide"
    label: ClassVar[str] = gettext_noop("high tide")
    line: ClassVar[str] = r"tide at (?P<harbour>[a-z]+)(?: plus (?P<minutes>\d+))?"
    fields: ClassVar[tuple[Field, ...]] = (
        Choice("harbour", gettext_noop("Harbour"), choices=tuple((name, name) for name in HARBOURS)),
        Whole("minutes", gettext_noop("Minutes after it"), form="tide_minutes", to=int),
    )

    harbour: str
    minutes: int = 0

    def __post_init__(self) -> None:
        if self.harbour not in HARBOURS:
            raise InvalidSchedule(f"harbour {self.harbour!r} is not known.", field="harbour")
        if not 0 <= self.minutes < 60:
            raise InvalidSchedule("minutes must be from 0 to 59.", field="minutes")

    def to_text(self) -> str:
        return f"tide at {self.harbour}" + (f" plus {self.minutes}" if self.minutes else "")

    def _words(self, _: Translate) -> str:
        return _("{minutes} minutes after high tide at {harbour}").format(minutes=self.minutes, harbour=self.harbour)

    @property
    def _first(self) -> datetime:
        return NAIVE_EPOCH + HARBOURS[self.harbour] + timedelta(minutes=self.minutes)

    def _next(self, instant: datetime) -> datetime | None:
        return self._first + ((instant - self._first) // PERIOD + 1) * PERIOD

    def _previous(self, instant: datetime) -> datetime | None:
        return self._first + (-((self._first - instant) // PERIOD) - 1) * PERIOD

    def _count(self, start: datetime, end: datetime) -> int:
        return (end - self._first) // PERIOD - (start - self._first) // PERIOD
