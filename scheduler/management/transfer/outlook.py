"""Outlook: what an imported job would do from now on, as far as a person should know before."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings

from scheduler.engine.views.datetimes import said, zone_of_schedule
from scheduler.engine.views.pauses import Hold
from scheduler.management.transfer.entry import Entry, Pause
from scheduler.models import Job
from scheduler.policy import Policy
from scheduler.policy.codec import from_options
from scheduler.policy.misfire import RESOLUTION
from scheduler.schedules import Schedule, Slots

PAUSED = "paused"
YEAR = timedelta(days=366)


def bounds_of(options: dict[str, Any]) -> Policy:
    """Return a policy of which only `starts_at` and `ends_at` are read, as they would be stored."""
    return from_options({name: options[name] for name in ("starts_at", "ends_at") if name in options})


def pause_to_come(pause: Pause | None, now: datetime) -> Pause | None:
    """Return a pause, unless it has ended."""
    return pause if pause and (pause.until is None or pause.until > now) else None


def with_pause(changes: list[str] | None, job: Job | None, pause: Pause | None) -> list[str] | None:
    """Return the changes of a job, with that of its pause where it lacks one, or its pause ends at another time."""
    if changes is None or job is None or pause is None:
        return changes
    return changes if job.paused_at and Hold.of(job).until == pause.until else [*changes, PAUSED]


def notes_of_pause(pause: Pause | None) -> Iterator[str]:
    """Yield what becomes of a job that was paused."""
    if pause:
        yield f"paused {f'until {said(pause.until)}' if pause.until else 'until it is resumed'}, as it was there"


def next_slot(entry: Entry, schedule: Schedule, bounds: Policy, job: Job | None, now: datetime) -> datetime | None:
    """Return the first slot that the job has from now on, once it is written; None where it is off or paused."""
    if entry.pause or not entry.said["enabled"]:
        return None
    starts_at = bounds.starts_at
    begin = starts_at - RESOLUTION if starts_at and starts_at > now else now
    return _first_slot(schedule, begin, job.anchor_at if job else now)


def _first_slot(schedule: Schedule, begin: datetime, anchor: datetime) -> datetime | None:
    bound = schedule.bind(anchor=anchor, timezone=settings.TIME_ZONE)
    return next(iter(bound.upcoming(1, begin)), None)


def notes_of_clocks(schedule: Schedule, now: datetime, entry: Entry) -> Iterator[str]:
    """Yield what changes of the clock do within a year to a schedule that another scheduler may have run otherwise."""
    if not entry.whole:
        bound = schedule.bind(anchor=now, timezone=settings.TIME_ZONE)
        for at, note in bound.notes_between(now, now + YEAR):
            yield f"{said(at, zone_of_schedule(bound))}: {note}"


def over(schedule: Schedule, bounds: Policy, now: datetime) -> str:
    """Say why a job would have no slot to come; empty where it has one. What has passed is not run."""
    if schedule.slots is Slots.ONE and _first_slot(schedule, now, now) is None:
        return f"Its only slot has passed: {schedule.to_text()}."
    if bounds.ends_at and bounds.ends_at <= now:
        return f"Its end has passed: {said(bounds.ends_at)}."
    return ""
