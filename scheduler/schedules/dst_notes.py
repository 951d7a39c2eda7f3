"""What a change of the clock does to a slot, in words, for previews."""

from collections.abc import Iterator
from datetime import datetime

from scheduler.schedules.base import Translate
from scheduler.schedules.timeline import Timeline
from scheduler.schedules.wallclock import SECOND, Change, change_around, changes_between, local, offset_at


def note_at(timeline: Timeline, slot: datetime, _: Translate) -> str | None:
    """The note of one slot (naive UTC); None when its wall time is an ordinary one."""
    wall = local(timeline.zone, slot).replace(tzinfo=None, fold=0)
    if timeline.fixed:
        lost = _lost_before(timeline, slot)
        if lost is not None:
            return _("{lost} does not exist, runs at {time}").format(lost=_clock(lost), time=_clock(wall))
    change = change_around(timeline.zone, wall)
    if change is None:
        return None
    if timeline.fixed:
        return _("{time} occurs twice, runs once (first pass)").format(time=_clock(wall))
    return _("{time} occurs twice, runs both times").format(time=_clock(wall))


def notes_between(timeline: Timeline, start: datetime, end: datetime, _: Translate) -> Iterator[tuple[datetime, str]]:
    """The first touched slot of each change in `start < slot <= end` (naive UTC), with its note."""
    for change in changes_between(timeline.zone, start, end):
        slot = _touched(timeline, change)
        if slot is not None and start < slot <= end:
            note = note_at(timeline, slot, _)
            if note is not None:
                yield slot, note


def _touched(timeline: Timeline, change: Change) -> datetime | None:
    first = change.at if change.is_gap else change.at - (change.before - change.after)
    return timeline.next_after(first - SECOND)


def _lost_before(timeline: Timeline, slot: datetime) -> datetime | None:
    """The first matching wall time lost in a gap that ends at this slot."""
    before, after = offset_at(timeline.zone, slot - SECOND), offset_at(timeline.zone, slot)
    if after <= before:
        return None
    lost = timeline.pattern.first_from(slot + before)
    return lost if lost is not None and lost < slot + after else None


def _clock(wall: datetime) -> str:
    return f"{wall:%H:%M:%S}" if wall.second else f"{wall:%H:%M}"
