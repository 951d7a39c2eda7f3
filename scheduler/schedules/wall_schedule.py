"""What DailyAt, Weekly, Monthly and Cron share: a pattern of wall times in a zone."""

from abc import abstractmethod
from dataclasses import replace
from datetime import UTC, datetime, timedelta, tzinfo
from typing import ClassVar, Self

from scheduler.exceptions import InvalidSchedule
from scheduler.safetext import shown
from scheduler.schedules.base import Schedule, Translate, naive_utc
from scheduler.schedules.dst_notes import note_at, notes_between
from scheduler.schedules.duration import format_duration
from scheduler.schedules.fields import Field
from scheduler.schedules.fields import gettext_noop as _
from scheduler.schedules.timeline import Timeline
from scheduler.schedules.wallclock import EARLIEST, LATEST, zone_of

UNBOUND_ZONE = "UTC"
ZONE = Field("timezone", _("Time zone"), _("Such as Europe/Berlin; empty: the time zone of the project."))


class WallSchedule(Schedule):
    """Follows the wall clock of `timezone`, else of the zone `bind` supplies, else of UTC."""

    __slots__ = ()

    is_calendar: ClassVar[bool] = True

    def bind(self, *, anchor: datetime | None, timezone: str) -> Self:
        """A copy in `timezone`, unless it has its own."""
        return self if self.timezone is not None else replace(self, timezone=timezone)  # type: ignore[type-var]

    def dst_note(self, slot: datetime, translate: Translate = str) -> str | None:
        """Such as "02:30 does not exist, runs at 03:00" or "02:30 occurs twice, runs once (first pass)"."""
        instant = naive_utc(slot)
        return note_at(self._timeline(), instant, translate) if EARLIEST <= instant <= LATEST else None

    def notes_between(self, a: datetime, b: datetime, translate: Translate = str) -> list[tuple[datetime, str]]:
        """The first touched slot per change of the clock, with its `dst_note`."""
        start, end = max(naive_utc(a), EARLIEST), min(naive_utc(b), LATEST)
        return [
            (slot.replace(tzinfo=UTC), note) for slot, note in notes_between(self._timeline(), start, end, translate)
        ]

    @abstractmethod
    def _timeline(self) -> Timeline:
        """The slots of this schedule; cached by value."""

    @property
    def _zone_name(self) -> str:
        return self.timezone or UNBOUND_ZONE

    def _next(self, instant: datetime) -> datetime | None:
        if instant >= LATEST:
            return None
        slot = self._timeline().next_after(max(instant, EARLIEST))
        return slot if slot is not None and slot <= LATEST else None

    def _previous(self, instant: datetime) -> datetime | None:
        if instant <= EARLIEST:
            return None
        slot = self._timeline().previous_before(min(instant, LATEST + timedelta(seconds=1)))
        return slot if slot is not None and slot > EARLIEST else None

    def _count(self, start: datetime, end: datetime) -> int:
        start, end = max(start, EARLIEST), min(end, LATEST)
        return self._timeline().count_between(start, end) if start < end else 0

    def _in_zone(self, words: str, _: Translate) -> str:
        if self.timezone is None:
            return words
        return _("{schedule}, {timezone} time").format(schedule=words, timezone=self.timezone)

    def _suffix(self) -> str:
        jitter = f" with jitter {format_duration(self.jitter)}" if self.jitter else ""
        return jitter + (f" @ {self.timezone}" if self.timezone else "")


def checked_zone(timezone: str | tzinfo | None) -> str | None:
    """The name of a zone that exists; a ZoneInfo gives its key."""
    if timezone is None:
        return None
    name = getattr(timezone, "key", timezone)
    if not isinstance(name, str):
        raise InvalidSchedule(
            f'timezone {shown(timezone)} has no name: write one like "Europe/Berlin".', field="timezone"
        )
    zone_of(name)
    return name
