"""The last and the next 24 hours of some jobs, as lanes."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from django.conf import settings
from django.urls import reverse
from django.utils.translation import gettext as _

from scheduler.admin.instants import duration
from scheduler.admin.look import RUN_TONES, STOPPED
from scheduler.admin.svg import Band, Lane
from scheduler.models import Job, RunLog, Status
from scheduler.models.fields import Unreadable

DAY = timedelta(days=1)
MOST_RUNS = 200
DENSE = 96
"""More starts a day than this are drawn as one band."""
INSTANT = timedelta(seconds=1)


def past_lanes(jobs: Sequence[Job], runs: dict[int, list[RunLog]], now: datetime, site: str) -> list[Lane]:
    """Return what ran in the last 24 hours; misses are hatched."""
    return [Lane(job.name, _url(job, site), _past(runs.get(job.pk, []), now)) for job in jobs]


def future_lanes(jobs: Sequence[Job], now: datetime, site: str) -> list[Lane]:
    """Return what will start in the next 24 hours; what starts often is one band."""
    return [Lane(job.name, _url(job, site), _future(job, now)) for job in jobs]


def _url(job: Job, site: str) -> str:
    return reverse(f"{site}:scheduler_job_page", args=[job.pk])


def _past(newest_first: Sequence[RunLog], now: datetime) -> list[Band]:
    bands = [_band(run, now) for run in newest_first]
    if len(newest_first) == MOST_RUNS:
        oldest = newest_first[-1].scheduled_for
        title = _("More than {count} runs: older ones are not drawn").format(count=MOST_RUNS)
        bands.append(Band(now - DAY, oldest, "sched-dense", title))
    return bands[::-1]


def _band(run: RunLog, now: datetime) -> Band:
    start = run.started_at or run.coalesced_from or run.scheduled_for
    end = run.finished_at or (now if run.status == Status.RUNNING else run.scheduled_for + INSTANT)
    if run.status in (Status.MISSED, Status.SKIPPED):
        end = run.scheduled_for + INSTANT
    title = f"{run.scheduled_for.astimezone(UTC):%H:%M:%S} UTC · {Status(run.status).label}"
    took = duration(run.duration)
    tone = "missed" if run.status == Status.MISSED else RUN_TONES.get(run.status, "quiet")
    return Band(start, max(start, end), f"sched-{tone}", f"{title} · {took}" if took else title)


def _future(job: Job, now: datetime) -> list[Band]:
    if isinstance(job.schedule, Unreadable) or job.job_state in STOPPED:
        return []
    schedule = job.schedule.bind(anchor=job.anchor_at or now, timezone=settings.TIME_ZONE)
    count = schedule.count_between(now, now + DAY, DENSE + 1)
    if schedule.from_completion and job.schedule.period is not None:
        count = min(DENSE + 1, int(DAY / job.schedule.period))
    if count > DENSE:
        title = _("More than {count} starts: {words}").format(count=DENSE, words=job.schedule.describe(_))
        return [Band(now, now + DAY, "sched-dense", title)]
    slots = [at for at in schedule.upcoming(max(count, 1), now) if at <= now + DAY]
    return [Band(at, at + INSTANT, "sched-calm", f"{at.astimezone(UTC):%H:%M} UTC") for at in slots]
