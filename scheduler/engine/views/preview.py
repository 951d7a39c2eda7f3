"""Preview: what a schedule means, in words and in its next slots, with notes where clocks change."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, NamedTuple

from django.conf import settings
from django.utils.translation import gettext as _

from scheduler.engine.views.datetimes import said
from scheduler.engine.views.job_view import JobView
from scheduler.engine.views.upcoming import slots_to_come, start_of, why_put_off
from scheduler.models import Job
from scheduler.models.stored import Unreadable
from scheduler.schedules import Schedule


class Slot(NamedTuple):
    """One slot to come, and what clocks do to it, or what puts off its start: `start`, None where that is the slot. A
    page says all of it in HTML."""

    at: Any
    note: Any
    away: Any = ""
    start: datetime | None = None


@dataclass(frozen=True, slots=True)
class Preview:
    """What a schedule means. `zone` is empty where it has no times of day, `timezone` is that of its slots."""

    words: str = ""
    text: str = ""
    zone: str = ""
    timezone: str = ""
    slots: list[Slot] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)


def preview(
    schedule: Schedule,
    now: datetime,
    count: int,
    *,
    anchor: datetime | None = None,
    slots: Iterable[datetime] | None = None,
) -> Preview:
    """Return the preview: `slots`, or the next `count` of the schedule. Without an anchor, an interval counts from
    now."""
    bound = schedule.bind(anchor=anchor or now, timezone=settings.TIME_ZONE)
    zone = bound.timezone or settings.TIME_ZONE
    return Preview(
        words=schedule.describe(_),
        text=schedule.to_text(),
        zone=zone if schedule.is_calendar else "",
        timezone=zone,
        slots=[
            Slot(at, bound.dst_note(at, _) or "") for at in (bound.upcoming(count, now) if slots is None else slots)
        ],
        notes=list(bound.notes(_)),
    )


def preview_of(view: JobView, now: datetime, count: int) -> Preview:
    """Return the preview of a job: its next slots, or those that it would have if nothing stopped it."""
    job = view.job
    if isinstance(job.schedule, Unreadable):
        return Preview(errors=[job.schedule.error])
    slots = (
        []
        if isinstance(job.policy, Unreadable)
        else slots_to_come(job, count + 1, now, held_until=view.next_start if view.held_by else None)
    )
    if view.held_by:  # a slot that passes in a pause is not made up for
        slots = [slot for slot in slots if slot > now]
    found = preview(job.schedule, now, count, anchor=job.anchor_at, slots=slots[:count])
    return replace(found, slots=[_with_start(job, slot, now) for slot in found.slots])


def _with_start(job: Job, slot: Slot, now: datetime) -> Slot:
    start = start_of(job, slot.at)
    if start <= max(slot.at, now):
        return slot
    words = _("starts at {start}: {why}").format(start=said(start), why=why_put_off(job, slot.at))
    return slot._replace(start=start, note="; ".join(filter(None, (words, slot.note))))
