"""Preview: what a schedule means, in words and in its next slots, with notes where clocks change."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

from django.conf import settings
from django.utils.translation import gettext as _

from scheduler.engine.views.job_view import JobView
from scheduler.engine.views.upcoming import slots_to_come
from scheduler.models.stored import Unreadable
from scheduler.schedules import Schedule


class Slot(NamedTuple):
    """One slot to come, and what clocks do to it. A page says all three in HTML."""

    at: Any
    note: str
    away: Any = ""


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
    return preview(job.schedule, now, count, anchor=job.anchor_at, slots=slots[:count])
