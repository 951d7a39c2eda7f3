"""Once: a single instant."""

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, ClassVar, Self

from scheduler.exceptions import InvalidSchedule
from scheduler.safetext import shown
from scheduler.schedules.base import Schedule, Slots, Translate, as_utc
from scheduler.schedules.every import parse_instant
from scheduler.schedules.fields import Field, Instant
from scheduler.schedules.fields import gettext_noop as _
from scheduler.schedules.instants import instant_text
from scheduler.schedules.wall_schedule import ZONE, checked_zone
from scheduler.schedules.wallclock import instant_of, zone_of


@dataclass(frozen=True, slots=True)
class Once(Schedule):
    """One slot, at `at`.

    A naive `at` is a wall time of `timezone`, else of the zone `bind` supplies (the project's TIME_ZONE), else of UTC.
    A wall time lost in a gap means the first instant after it, a double one its first pass.
    """

    kind: ClassVar[str] = "once"
    label: ClassVar[str] = _("once")
    line: ClassVar[str] = r"once at (?P<at>\S+(?: \S+)?)"
    slots: ClassVar[Slots] = Slots.ONE
    fields: ClassVar[tuple[Field, ...]] = (
        Instant("at", _("Date and time"), _("Such as 2027-01-31 12:00."), form="once_at",
                missing=_("Write a date and time such as 2027-01-31 12:00.")),
        ZONE,
    )  # fmt: skip

    at: datetime
    timezone: str | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.at, datetime):
            raise InvalidSchedule(f"at must be a datetime, not {shown(self.at)}.", field="at")
        if self.timezone is not None:
            object.__setattr__(self, "at", self._resolved(checked_zone(self.timezone) or "UTC"))
            object.__setattr__(self, "timezone", None)
        elif self.at.utcoffset() is not None:
            object.__setattr__(self, "at", as_utc(self.at))

    def bind(self, *, anchor: datetime | None, timezone: str) -> Self:
        """A copy whose instant is aware."""
        return self if self.at.tzinfo is not None else replace(self, at=self._resolved(timezone))

    @property
    def follows_timezone(self) -> bool:
        """True for a wall time."""
        return self.at.tzinfo is None

    def _resolved(self, timezone: str) -> datetime:
        if self.at.utcoffset() is not None:
            return as_utc(self.at)
        try:
            return instant_of(zone_of(timezone), self.at).replace(tzinfo=UTC)
        except OverflowError:
            message = f"at {self.at.isoformat()} in {timezone} lies outside the years 1 to 9999 of UTC."
            raise InvalidSchedule(message, field="at") from None

    def _next(self, instant: datetime) -> datetime | None:
        at = self.at.replace(tzinfo=None)
        return at if instant < at else None

    def _previous(self, instant: datetime) -> datetime | None:
        at = self.at.replace(tzinfo=None)
        return at if at < instant else None

    def _count(self, start: datetime, end: datetime) -> int:
        return int(start < self.at.replace(tzinfo=None) <= end)

    def _words(self, _: Translate) -> str:
        zone = f" {self.at.tzname()}" if self.at.tzinfo else ""
        return _("once at {instant}").format(instant=f"{self.at:%Y-%m-%d %H:%M:%S}{zone}")

    def to_text(self) -> str:
        """`once at 2026-01-01T12:00:00Z`; without an offset when naive."""
        return f"once at {instant_text(self.at)}"

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        return cls(**{**data, "at": parse_instant(data.get("at"), field="at")})
