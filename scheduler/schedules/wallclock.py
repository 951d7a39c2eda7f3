"""Wall clocks of time zones: what an instant shows, when the clock changes, and when a wall time happens.

Instants are naive UTC and wall times naive local in here, whole seconds both; the public classes convert at their edge.
"""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from difflib import get_close_matches
from functools import lru_cache
from typing import NamedTuple
from zoneinfo import ZoneInfo, available_timezones

from scheduler.exceptions import InvalidSchedule
from scheduler.safetext import shown

SECOND = timedelta(seconds=1)
PROBE = timedelta(days=3)
"""No two changes of a zone are closer in tzdata 2026.6: the closest are four days apart (Freetown 1939)."""
EARLIEST, LATEST = datetime(2, 1, 1), datetime(9999, 12, 30)  # noqa: DTZ001 - naive UTC
"""Calendar slots lie between these: at the very ends of datetime, local times would overflow."""


class Change(NamedTuple):
    """The clock changes: `at` is the first instant of the new offset."""

    at: datetime
    before: timedelta
    after: timedelta

    @property
    def is_gap(self) -> bool:
        """Wall times from `first_wall` until before `last_wall` never happen; else they happen twice."""
        return self.after > self.before

    @property
    def first_wall(self) -> datetime:
        return self.at + min(self.before, self.after)

    @property
    def last_wall(self) -> datetime:
        return self.at + max(self.before, self.after)


LONGEST_NAME = 100
"""Of a zone that one may have meant."""


@lru_cache(maxsize=512)
def zone_of(name: str) -> ZoneInfo:
    """The IANA time zone of this name; InvalidSchedule with a suggestion when there is none."""
    try:
        return ZoneInfo(name)
    except (LookupError, ValueError, OSError, TypeError):
        comparable = isinstance(name, str) and len(name) <= LONGEST_NAME
        close = get_close_matches(name, sorted(available_timezones()), n=1) if comparable else []
        hint = f'did you mean "{close[0]}"?' if close else 'write one like "Europe/Berlin" or "UTC".'
        raise InvalidSchedule(f"timezone {shown(name)} is not an IANA time zone: {hint}", field="timezone") from None


def local(zone: ZoneInfo, instant: datetime) -> datetime:
    """The aware local time of an instant; its `fold` is 1 in the second pass of an overlap."""
    return zone.fromutc(instant.replace(tzinfo=zone))


def offset_at(zone: ZoneInfo, instant: datetime) -> timedelta:
    """Local minus UTC at an instant."""
    return instant.replace(tzinfo=UTC).astimezone(zone).utcoffset() or timedelta(0)


def offsets_of(zone: ZoneInfo, wall: datetime) -> tuple[timedelta, timedelta]:
    """The offsets before and after the change a wall time falls in; equal when it happens exactly once (PEP 495)."""
    early = wall.replace(tzinfo=zone, fold=0).utcoffset() or timedelta(0)
    late = wall.replace(tzinfo=zone, fold=1).utcoffset() or timedelta(0)
    return early, late


def instant_of(zone: ZoneInfo, wall: datetime) -> datetime:
    """When a fixed wall time is served: its first pass, or the first instant after the gap it is lost in."""
    before, after = offsets_of(zone, wall)
    if before < after:
        change = change_around(zone, wall)
        if change is not None:
            return change.at
    return wall - before


def change_around(zone: ZoneInfo, wall: datetime) -> Change | None:
    """The change that makes this wall time lost or double; None when it happens exactly once."""
    wall = wall.replace(microsecond=0)
    before, after = offsets_of(zone, wall)
    if before == after:
        return None
    early, late = sorted((wall - before, wall - after))
    # A double wall time stands before the change in its first pass and after it in its second; a lost one read
    # with either offset lands on the other side. So the change is in (early, late].
    return _change_between(zone, early, late)


def changes_between(zone: ZoneInfo, start: datetime, end: datetime) -> Iterator[Change]:
    """The changes in `start < at <= end`, in order."""
    start, end = max(start, EARLIEST), min(end, LATEST)
    for year in range(start.year, end.year + 1):
        for change in _changes_of(zone, year):
            if start < change.at <= end:
                yield change


@lru_cache(maxsize=4096)
def _changes_of(zone: ZoneInfo, year: int) -> tuple[Change, ...]:
    """All changes of one UTC year. zoneinfo does not list them, so look every few days and bisect where it differs."""
    found = []
    start = datetime(year, 1, 1) - SECOND  # noqa: DTZ001 - naive UTC
    end = min(start.replace(year=year), LATEST)
    offset = offset_at(zone, start)
    while start < end:
        until = start + min(PROBE, end - start)
        following = offset_at(zone, until)
        if following != offset:
            found.append(_change_between(zone, start, until))
        start, offset = until, following
    return tuple(found)


def _change_between(zone: ZoneInfo, low: datetime, high: datetime) -> Change:
    """The change in `low < at <= high`, by bisection to the second."""
    before, after = offset_at(zone, low), offset_at(zone, high)
    while high - low > SECOND:
        middle = low + (high - low) // 2
        middle = middle.replace(microsecond=0)
        if offset_at(zone, middle) == before:
            low = middle
        else:
            high = middle
    return Change(high, before, after)
