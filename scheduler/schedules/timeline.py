"""From wall times to instants: the two daylight-saving rules of cron(8), exactly.

Fixed times (cronie: neither minute nor hour begins with `*`) happen once a day whatever the clock does: a lost time
fires at the first instant after the gap, several lost times together; a double time fires in the first pass only.
Wildcard times are real time: every instant whose wall clock matches, both passes, nothing made up for a gap.

Instants are naive UTC here. Slots are whole seconds.
"""

from datetime import datetime, timedelta
from itertools import pairwise
from typing import ClassVar
from zoneinfo import ZoneInfo

from scheduler.schedules.pattern import Pattern
from scheduler.schedules.wallclock import (
    SECOND,
    change_around,
    changes_between,
    instant_of,
    local,
    offset_at,
    offsets_of,
)

Slot = datetime | None


def floor(instant: datetime) -> datetime:
    """The last whole second at or before an instant."""
    return instant.replace(microsecond=0)


def last_second_before(instant: datetime) -> datetime:
    """The last whole second strictly before an instant."""
    whole = floor(instant)
    return whole if whole < instant else whole - SECOND


class FixedTimeline:
    """The slots of a pattern of fixed times in one zone.

    Every wall time has one instant, and these never decrease. So "slots after t" are "wall times not passed at t".
    """

    __slots__ = ("pattern", "zone")
    fixed: ClassVar[bool] = True

    def __init__(self, pattern: Pattern, zone: ZoneInfo) -> None:
        self.pattern = pattern
        self.zone = zone

    def next_after(self, instant: datetime) -> Slot:
        wall = self.pattern.first_from(self._unpassed(floor(instant)))
        return None if wall is None else instant_of(self.zone, wall)

    def previous_before(self, instant: datetime) -> Slot:
        wall = self.pattern.last_before(self._unpassed(last_second_before(instant)))
        return None if wall is None else instant_of(self.zone, wall)

    def count_between(self, start: datetime, end: datetime) -> int:
        start, end = floor(start), floor(end)
        total = self.pattern.count(self._unpassed(start), self._unpassed(end))
        for change in changes_between(self.zone, start, end):
            if change.is_gap:
                collapsed = self.pattern.count(change.first_wall, change.last_wall + SECOND)
                total -= max(0, collapsed - 1)
        return total

    def _unpassed(self, instant: datetime) -> datetime:
        """The first wall time served after an instant: in the second pass, all double times are behind us."""
        now = local(self.zone, instant)
        wall = now.replace(tzinfo=None, fold=0)
        if now.fold:
            change = change_around(self.zone, wall)
            if change is not None:
                return change.last_wall
        return wall + SECOND


class WildcardTimeline:
    """The slots of a pattern of wildcard times in one zone: cut UTC where the offset changes, shift each stretch."""

    __slots__ = ("pattern", "zone")
    fixed: ClassVar[bool] = False

    def __init__(self, pattern: Pattern, zone: ZoneInfo) -> None:
        self.pattern = pattern
        self.zone = zone

    def next_after(self, instant: datetime) -> Slot:
        start = floor(instant) + SECOND
        here = self._settled(start)
        if here is not None:
            wall = self.pattern.first_from(start + here)
            if wall is None:
                return None
            there = self._settled_wall(wall)
            if there is not None:
                return wall - there
        return self._next_by_stretch(start)

    def previous_before(self, instant: datetime) -> Slot:
        end = last_second_before(instant)
        here = self._settled(end)
        if here is not None:
            wall = self.pattern.last_before(end + here + SECOND)
            if wall is None:
                return None
            there = self._settled_wall(wall)
            if there is not None:
                return wall - there
        return self._previous_by_stretch(end)

    def count_between(self, start: datetime, end: datetime) -> int:
        start, end = floor(start) + SECOND, floor(end) + SECOND
        edges = [start, *(change.at for change in changes_between(self.zone, start, end - SECOND)), end]
        total = 0
        for low, high in pairwise(edges):
            offset = offset_at(self.zone, low)
            total += self.pattern.count(low + offset, high + offset)
        return total

    def _settled(self, instant: datetime) -> timedelta | None:
        """The offset, when no change makes this instant's wall time double."""
        return self._settled_wall(local(self.zone, instant).replace(tzinfo=None, fold=0))

    def _settled_wall(self, wall: datetime) -> timedelta | None:
        """The offset of a wall time that happens exactly once. Between two such, wall order is real order."""
        before, after = offsets_of(self.zone, wall)
        return before if before == after else None

    def _next_by_stretch(self, start: datetime) -> Slot:
        while True:
            offset = offset_at(self.zone, start)
            wall = self.pattern.first_from(start + offset)
            if wall is None:
                return None
            slot = wall - offset
            change = next(changes_between(self.zone, start, slot), None)
            if change is None:
                return slot
            start = change.at

    def _previous_by_stretch(self, end: datetime) -> Slot:
        while True:
            offset = offset_at(self.zone, end)
            wall = self.pattern.last_before(end + offset + SECOND)
            if wall is None:
                return None
            slot = wall - offset
            changes = list(changes_between(self.zone, slot, end))
            if not changes:
                return slot
            end = changes[-1].at - SECOND


Timeline = FixedTimeline | WildcardTimeline
