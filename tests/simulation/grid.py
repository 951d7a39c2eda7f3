"""Grid: an independent model of a schedule. Plain arithmetic: slots are `first + k · interval` for k = 0, 1, 2 …"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

DAY = timedelta(days=1)
LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Grid:
    """The slots of an interval from its anchor on, or of a time of day in a zone where every day has 24 hours."""

    first: datetime
    interval: timedelta

    @classmethod
    def daily(cls, hour: int, minute: int, ahead: timedelta) -> "Grid":
        """Return the grid of a time of day on wall clocks that are so far ahead of UTC."""
        return cls(LONG_AGO.replace(hour=hour, minute=minute) - ahead, DAY)

    def number_after(self, instant: datetime) -> int:
        """Return the number of the first slot after an instant."""
        return max(0, (instant - self.first) // self.interval + 1)

    def number_of(self, instant: datetime) -> int | None:
        """Return the number of the slot at an instant, None when there is none."""
        number, rest = divmod(instant - self.first, self.interval)
        return None if rest or number < 0 else number

    def slot(self, number: int) -> datetime:
        return self.first + number * self.interval
