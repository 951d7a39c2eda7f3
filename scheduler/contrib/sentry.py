"""Sentry: check-ins of its cron monitoring, so that Sentry also notices when nothing runs at all."""

import uuid
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.conf import settings
from django.utils.text import slugify

from scheduler.context import RunContext
from scheduler.exceptions import ConfigurationError
from scheduler.models import Job, RunLog, Trigger
from scheduler.schedules import Schedule
from scheduler.signals import run_finished, run_started

try:
    from sentry_sdk.crons import capture_checkin
except ImportError as error:
    message = "scheduler.contrib.sentry needs sentry-sdk: pip install 'django-inprocess-scheduler[sentry]'"
    raise ConfigurationError(message) from error

LONGEST_SLUG = 50
"""Sentry cuts longer ones, and then two jobs would share a monitor."""
UNITS = (("day", 86_400), ("hour", 3_600), ("minute", 60))


def connect(*, jobs: Collection[str] | None = None, **monitor: Any) -> None:
    """Send a check-in when a slot begins and when it ends; call this in `AppConfig.ready()`, after `sentry_sdk.init()`.

    `jobs`: the names of the jobs with a monitor; None means all. `monitor` becomes part of the configuration of each
    monitor, for example `max_runtime=60` (minutes) or `failure_issue_threshold=3`.
    """
    told = _CheckIns(None if jobs is None else frozenset(jobs), monitor)
    run_started.connect(told.began, weak=False, dispatch_uid=f"{__name__}.began")
    run_finished.connect(told.ended, weak=False, dispatch_uid=f"{__name__}.ended")


def disconnect() -> None:
    """Send no further check-in."""
    run_started.disconnect(dispatch_uid=f"{__name__}.began")
    run_finished.disconnect(dispatch_uid=f"{__name__}.ended")


@dataclass(frozen=True)
class _CheckIns:
    """The attempts of a slot are one check-in: an attempt that another one follows is neither good nor bad news."""

    jobs: frozenset[str] | None
    monitor: dict[str, Any]

    def began(self, run: RunContext, **_: Any) -> None:
        if self._has_monitor(run.job, run.trigger):
            key = _key(run.job, run.scheduled_for)
            capture_checkin(slug_of(run.job), key, status="in_progress")

    def ended(self, job: Job, run: RunLog, **_: Any) -> None:
        if run.goes_again or not self._has_monitor(job.name, run.trigger):
            return
        capture_checkin(
            slug_of(job.name),
            _key(job.name, run.scheduled_for),
            status="ok" if run.went_well else "error",
            duration=None if run.duration is None else run.duration.total_seconds(),
            monitor_config=self._config(job.schedule),
        )

    def _has_monitor(self, job: str, trigger: str) -> bool:
        """Runs by hand, of the past or for users are no news of the schedule."""
        of_plan = trigger in (Trigger.SCHEDULE, Trigger.CATCH_UP, Trigger.RETRY)
        return of_plan and (self.jobs is None or job in self.jobs)

    def _config(self, schedule: Schedule) -> Any:
        """Return what Sentry makes or changes the monitor from; None where it cannot know such a schedule."""
        when = _when(schedule)
        if when is None:
            return None
        zone = getattr(schedule, "timezone", None) or settings.TIME_ZONE
        return {"schedule": when, "timezone": zone, **self.monitor}


def slug_of(job: str) -> str:
    """Return the slug of a job's monitor: its name where that is one, else the name and a part of its hash."""
    slug = slugify(job)
    if slug == job and len(slug) <= LONGEST_SLUG:
        return slug
    return f"{slug[: LONGEST_SLUG - 9]}-{uuid.uuid5(uuid.NAMESPACE_OID, job).hex[:8]}".lstrip("-")


def _key(job: str, slot: datetime) -> str:
    """The same in whichever process the slot begins and ends."""
    return uuid.uuid5(uuid.NAMESPACE_OID, f"{job} {slot.isoformat()}").hex


def _when(schedule: Schedule) -> dict[str, Any] | None:
    if crontab := schedule.crontab:
        return {"type": "crontab", "value": crontab}
    seconds = schedule.period.total_seconds() if schedule.is_interval and schedule.period else 0
    fitting = [(int(seconds // length), unit) for unit, length in UNITS if seconds and seconds % length == 0]
    return {"type": "interval", "value": fitting[0][0], "unit": fitting[0][1]} if fitting else None
