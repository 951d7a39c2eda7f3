"""Document: jobs as JSON of a documented schema, docs/reference/export.md."""

from datetime import datetime
from typing import Any

from django.conf import settings

from scheduler.engine.views.pauses import Hold
from scheduler.exceptions import InvalidOption
from scheduler.models import Group, Job
from scheduler.models.stored import Unreadable
from scheduler.policy import codec
from scheduler.policy.base import differences
from scheduler.schedules.instants import instant_text

FORMAT = "django-inprocess-scheduler"
VERSION = 1
"""Grows when a reader of the version before would misread a document; new keys alone do not count."""
COLUMNS = ("task", "enabled", "group", "priority", "description", "kwargs")
KEYS = ("name", *COLUMNS, "schedule", "options", "from_code", "overridden", "paused", "state")


def exported(jobs: list[Job], groups: list[Group], now: datetime) -> dict[str, Any]:
    """Return the document of some jobs, as `list_jobs` gives them; raises InvalidOption for one that cannot be read."""
    return {
        "format": FORMAT,
        "version": VERSION,
        "exported_at": instant_text(now),
        "time_zone": settings.TIME_ZONE,
        "jobs": [_job_data(job) for job in jobs],
        "paused_groups": [{"name": group.name, **_pause_data(Hold.of(group))} for group in groups],
    }


def _job_data(job: Job) -> dict[str, Any]:
    for value in (job.schedule, job.policy):
        if isinstance(value, Unreadable):
            raise InvalidOption(f"The job {job.name!r} cannot be exported: {value.error}")
    data = {"name": job.name, **{name: getattr(job, name) for name in COLUMNS}}
    data["schedule"] = _schedule_data(job)
    data["options"] = {name: codec.plain(value) for name, value in differences(job.policy).items()}
    if job.source:
        data |= {"from_code": True, "overridden": sorted(job.overridden_fields)}
    if job.paused_at:
        data["paused"] = _pause_data(Hold.of(job))
    return data | {"state": job.view.state.value}


def _schedule_data(job: Job) -> dict[str, Any]:
    """Return the schedule; that of people with the anchor of its intervals, so that their slots stay what they are."""
    of_people = not job.source or "schedule" in job.overridden_fields
    schedule = job.schedule
    if of_people and schedule.is_interval:
        schedule = schedule.bind(anchor=job.anchor_at, timezone=settings.TIME_ZONE)
    data: dict[str, Any] = schedule.to_dict()
    return data


def _pause_data(pause: Hold) -> dict[str, Any]:
    return {"until": instant_text(pause.until) if pause.until else None, "by": pause.by, "reason": pause.reason}
