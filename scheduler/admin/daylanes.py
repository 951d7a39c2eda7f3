"""The last and the next 24 hours of some jobs, as lanes."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from django.conf import settings
from django.urls import reverse
from django.utils.translation import gettext as _

from scheduler.admin.instants import counted_words, duration
from scheduler.admin.look import RUN_TONES, is_going
from scheduler.admin.svg import Band, Lane
from scheduler.engine.held import Paused, held_by
from scheduler.engine.tocome import bounds_of, slots_to_come
from scheduler.models import Job, RunLog, Status

DAY = timedelta(days=1)
MOST_RUNS = 200
DENSE = 96
"""More starts a day than this are drawn as one band."""
ON_TOP = ("quiet", "calm", "good", "busy", "missed", "bad")
"""What is drawn over what: a failure is never hidden."""
INSTANT = timedelta(seconds=1)
SO_CLOSE = timedelta(minutes=6)
"""Three pixels of a lane: runs closer than this cannot be told apart."""


def past_lanes(jobs: Sequence[Job], runs: dict[int, list[RunLog]], now: datetime, site: str) -> list[Lane]:
    """Return what ran in the last 24 hours; misses are hatched."""
    return [Lane(job.name, _url(job, site), _past(job, runs.get(job.pk, []), now)) for job in jobs]


def future_lanes(jobs: Sequence[Job], now: datetime, site: str, paused: Paused) -> list[Lane]:
    """Return what will start in the next 24 hours; what starts often is one band, what a pause holds has none."""
    return [Lane(job.name, _url(job, site), [] if held_by(job, paused) else _future(job, now)) for job in jobs]


def _url(job: Job, site: str) -> str:
    return reverse(f"{site}:scheduler_job_page", args=[job.pk])


def _past(job: Job, newest_first: Sequence[RunLog], now: datetime) -> list[Band]:
    stretches = sorted(_close_together(newest_first[::-1], now), key=lambda one: ON_TOP.index(_tone(one)))
    bands = [_band(one) for one in stretches]
    if len(newest_first) == MOST_RUNS:
        oldest = newest_first[-1].scheduled_for
        title = _("More than {count} runs: older ones are not drawn").format(count=MOST_RUNS)
        bands.insert(0, Band(max(now - DAY, job.created_at or now - DAY), oldest, "sched-dense", title))
    return bands


@dataclass(slots=True)
class _Stretch:
    """Runs that ended alike and lie so close together that they are drawn as one."""

    first: RunLog
    start: datetime
    end: datetime
    count: int = 1


def _close_together(oldest_first: Sequence[RunLog], now: datetime) -> Iterator[_Stretch]:
    stretch: _Stretch | None = None
    for run in oldest_first:
        start, end = _span(run, now)
        if stretch and run.status == stretch.first.status and start - stretch.end <= SO_CLOSE:
            stretch.end, stretch.count = max(end, stretch.end), stretch.count + 1
            continue
        if stretch:
            yield stretch
        stretch = _Stretch(run, start, end)
    if stretch:
        yield stretch


def _span(run: RunLog, now: datetime) -> tuple[datetime, datetime]:
    start = run.started_at or run.coalesced_from or run.scheduled_for
    if run.status in (Status.MISSED, Status.SKIPPED):
        return start, max(start, run.scheduled_for + INSTANT)
    end = run.finished_at or (now if run.status == Status.RUNNING else run.scheduled_for + INSTANT)
    return start, max(start, end)


def _tone(stretch: _Stretch) -> str:
    status = stretch.first.status
    return "missed" if status == Status.MISSED else RUN_TONES.get(status, "quiet")


def _band(stretch: _Stretch) -> Band:
    run, css = stretch.first, f"sched-{_tone(stretch)}"
    if stretch.count > 1:
        return Band(stretch.start, stretch.end, css, counted_words({run.status: stretch.count}, dict(Status.choices)))
    title = f"{run.scheduled_for.astimezone(UTC):%H:%M:%S} UTC · {Status(run.status).label}"
    took = duration(run.duration)
    return Band(stretch.start, stretch.end, css, f"{title} · {took}" if took else title, run.scheduled_for)


def _future(job: Job, now: datetime) -> list[Band]:
    if not is_going(job):
        return []
    bounds = bounds_of(job)
    begin, end = max(now, bounds.first or now), min(now + DAY, bounds.last or now + DAY)
    count = _count(job, begin, end)
    count = count if bounds.most is None else min(count, bounds.most)
    if count > DENSE:
        title = _("More than {count} starts: {words}").format(count=DENSE, words=job.schedule.describe(_))
        return [Band(begin, end, "sched-dense", title)]
    slots = [at for at in slots_to_come(job, count + 1, now) if now <= at <= now + DAY]
    return [Band(at, at + INSTANT, "sched-calm", f"{at.astimezone(UTC):%H:%M} UTC", at) for at in slots]


def _count(job: Job, begin: datetime, end: datetime) -> int:
    """Return about how often the job starts between two instants; at most one more than are drawn one by one."""
    if job.schedule.from_completion and job.schedule.period is not None:
        return min(DENSE + 1, int((end - begin) / job.schedule.period))
    schedule = job.schedule.bind(anchor=job.anchor_at or begin, timezone=settings.TIME_ZONE)
    return int(schedule.count_between(begin, end, DENSE + 1))
