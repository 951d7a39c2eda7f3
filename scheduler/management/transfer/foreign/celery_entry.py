"""Celery entry: what a schedule of Celery's beat means, for its dict and for the tables of django-celery-beat."""

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings

from scheduler.safetext import shown
from scheduler.schedules import Every
from scheduler.schedules.duration import length_words

ROUTING = ("queue", "exchange", "routing_key", "headers", "priority")
"""What Celery sends a message by; a task here is called."""
HOUSEKEEPING = "celery.backend_cleanup"
CLOCKS = (
    "On days when clocks change, slots follow the rule of cronie: a fixed time runs once. Celery may be an hour off "
    "then, run twice, or leave a day out."
)


def celery_zone() -> str:
    """Return the time zone of Celery's schedules by the settings of the project, as `app.timezone` has it."""
    zone = getattr(settings, "CELERY_TIMEZONE", None)
    if zone:
        return str(zone)
    return "UTC" if getattr(settings, "CELERY_ENABLE_UTC", True) else settings.TIME_ZONE


def is_tz_aware() -> bool:
    """Return whether django-celery-beat follows the zone of each row, which a setting of it turns off."""
    return bool(getattr(settings, "DJANGO_CELERY_BEAT_TZ_AWARE", True))


def interval(length: timedelta, *, anchor: datetime | None = None) -> Every:
    """Return an interval, on the grid of its last run where that is known; raises InvalidSchedule."""
    return Every(length, anchor=anchor)


def solar_refused(event: object, latitude: object, longitude: object) -> str:
    """Say why a solar schedule cannot be imported."""
    return (
        f"It follows the sun ({event} at {latitude}, {longitude}), which no schedule here does: make a job with a "
        "fixed time, or a manual one that a daily job starts by run_now."
    )


def discarded(seconds: float) -> tuple[dict[str, Any], str]:
    """Return the options for a message that expires, and what that means."""
    text = "here a slot that could not start for so long is missed (misfire, grace)"
    return {"misfire": "skip", "grace": seconds}, f"expires after {length_words(seconds)}: {text}"


def lost_routing(values: Mapping[str, Any]) -> Iterator[str]:
    """Yield what is lost of how messages are sent."""
    for name in ROUTING:
        if values.get(name) not in (None, "", {}, "{}", "null"):
            told = "set" if name == "headers" else shown(values[name])
            more = "; use priority= of the job, from -1000 to 1000" if name == "priority" else ""
            yield f"{name} ({told}) is not carried over: there is no message{more}"
