"""Rate limit: at most so many runs of a job in a sliding window."""

import re
from dataclasses import dataclass
from datetime import timedelta

from scheduler.exceptions import InvalidOption
from scheduler.safetext import shown
from scheduler.schedules.duration import LONGEST

UNITS = {
    "s": 1,
    "sec": 1,
    "second": 1,
    "m": 60,
    "min": 60,
    "minute": 60,
    "h": 3600,
    "hour": 3600,
    "d": 86400,
    "day": 86400,
}
WRITTEN = {"day": 86400, "h": 3600, "min": 60, "s": 1}
_FORM = re.compile(r"\s*([0-9]{1,9})\s*/\s*([0-9]{1,6})?\s*([a-z]+)\s*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class RateLimit:
    """At most `count` runs in any window of length `per`."""

    count: int
    per: timedelta

    @classmethod
    def parse(cls, text: str) -> "RateLimit":
        """Read `10/h`, `5/10min` or `100/day`; raises InvalidOption with the way to write it."""
        found = _FORM.fullmatch(text)
        unit = UNITS.get(found[3].lower()) if found else None
        count, units = (int(found[1]), int(found[2] or 1)) if found else (0, 0)
        if unit is None or not count or not units:
            raise InvalidOption(f"rate_limit is {shown(text)}; write for example '10/h', '5/10min' or '100/day'.")
        per = timedelta(seconds=unit * units)
        if per > LONGEST:
            raise InvalidOption(f"rate_limit is {shown(text)}; its window can have at most {LONGEST.days} days.")
        return cls(count, per)

    def __str__(self) -> str:
        seconds = int(self.per.total_seconds())
        unit, size = next((name, size) for name, size in WRITTEN.items() if seconds % size == 0)
        return f"{self.count}/{seconds // size if seconds != size else ''}{unit}"

    def is_used_up(self, runs_in_window: int) -> bool:
        """Return whether one more run would exceed the limit."""
        return runs_in_window >= self.count
