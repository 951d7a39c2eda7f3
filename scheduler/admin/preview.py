"""The preview of a schedule: words, the next slots, and what to mind."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.conf import settings
from django.utils.translation import gettext as _

from scheduler.admin.instants import instant, relative
from scheduler.schedules import Schedule

NEXT = 5


@dataclass(frozen=True, slots=True)
class Slot:
    """One slot to come."""

    at: Any
    away: Any
    note: str = ""


@dataclass(frozen=True, slots=True)
class Preview:
    """What a person sees of a schedule before it is saved."""

    words: str = ""
    text: str = ""
    zone: str = ""
    slots: list[Slot] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)


def preview_of(
    schedule: Schedule, now: datetime, *, anchor: datetime | None = None, slots: Sequence[datetime] | None = None
) -> Preview:
    """Return the preview: `slots`, or the next ones of the schedule. Without an anchor, an interval counts from now."""
    bound = schedule.bind(anchor=anchor or now, timezone=settings.TIME_ZONE)
    zone = bound.timezone or settings.TIME_ZONE
    return Preview(
        words=schedule.describe(_),
        text=schedule.to_text(),
        zone=zone if schedule.is_calendar else "",
        slots=[
            Slot(instant(at, zone=zone), relative(at, now), bound.dst_note(at, _) or "")
            for at in (bound.upcoming(NEXT, now) if slots is None else slots)
        ],
        notes=list(bound.notes(_)),
    )
