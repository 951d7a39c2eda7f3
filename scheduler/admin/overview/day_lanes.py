"""The last and the next 24 hours of some jobs, as lanes."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from django.utils.translation import gettext as _

from scheduler.admin.badges import run_tone, run_word
from scheduler.admin.jobs.pictures import address_of_runs
from scheduler.admin.names import address_of
from scheduler.admin.svg import Band, Lane
from scheduler.admin.times import counted_words
from scheduler.engine.views.datetimes import lasted
from scheduler.engine.views.enqueued import Enqueued, is_enqueued
from scheduler.engine.views.pauses import Paused, begins
from scheduler.engine.views.upcoming import after_run, bounds_of, put_off_until, slots_to_come, start_of
from scheduler.models import Job, RunLog, Status

DAY = timedelta(days=1)
MOST_RUNS = 200
DENSE = 96
"""More starts a day than this are drawn as one band."""
ON_TOP = ("quiet", "calm", "good", "busy", "missed", "warn", "bad")
"""What is drawn over what: a failure is never hidden."""
INSTANT = timedelta(seconds=1)
SO_CLOSE = timedelta(minutes=6)
"""Three pixels of a lane: runs closer than this cannot be told apart."""


def past_lanes(jobs: Sequence[Job], runs: dict[int, list[RunLog]], now: datetime, site: str) -> list[Lane]:
    """Return what ran in the last 24 hours; misses are hatched."""
    return [Lane(_name(job), _url(job, site), _past(job, runs.get(job.pk, []), now, site)) for job in jobs]


def future_lanes(jobs: Sequence[Job], now: datetime, site: str, paused: Paused) -> list[Lane]:
    """Return what will start in the next 24 hours; what starts often is one band. What a pause holds has none before
    its end."""
    return [Lane(_name(job), _url(job, site), _future(job, now, begins(job, paused, now), site)) for job in jobs]


def drawn(rows: Sequence[Lane]) -> tuple[list[Lane], list[Lane]]:
    """Return the lanes that have something to show, and those that have nothing: these are named, not drawn."""
    return [row for row in rows if row.bands], [row for row in rows if not row.bands]


def _name(job: Job) -> str:
    """Return the name of a job; of one that carries the calls of a function, that of the function without its path."""
    return Enqueued(job).function.rpartition(".")[2] if is_enqueued(job) else job.name


def _url(job: Job, site: str) -> str:
    return address_of(site, "job_page", job.pk)


def _past(job: Job, newest_first: Sequence[RunLog], now: datetime, site: str) -> list[Band]:
    stretches = sorted(_close_together(newest_first, now), key=lambda one: ON_TOP.index(_tone(one)))
    bands = [_band(one, site) for one in stretches]
    if len(newest_first) == MOST_RUNS:
        oldest = newest_first[-1].scheduled_for
        title = _("More than {count} runs: older ones are not drawn").format(count=MOST_RUNS)
        first = max(now - DAY, job.created_at or now - DAY)
        bands.insert(0, Band(first, oldest, "sched-dense", title, url=address_of_runs(site, job.pk, first, oldest)))
    return bands


@dataclass(slots=True)
class _Stretch:
    """Runs that ended alike and lie so close together that they are drawn as one."""

    first: RunLog
    start: datetime
    end: datetime
    last_slot: datetime
    """Its slots do not go back: what links to them names a stretch of slots."""
    count: int = 1


def _close_together(runs: Sequence[RunLog], now: datetime) -> Iterator[_Stretch]:
    """Yield the stretches by when they ran: an old slot may have run a moment ago."""
    stretch: _Stretch | None = None
    for run in sorted(runs, key=lambda one: (_span(one, now)[0], one.scheduled_for)):
        start, end = _span(run, now)
        if (
            stretch
            and run_tone(run) == run_tone(stretch.first)
            and run.status == stretch.first.status
            and start - stretch.end <= SO_CLOSE
            and run.scheduled_for >= stretch.last_slot
        ):
            stretch.end, stretch.count, stretch.last_slot = max(end, stretch.end), stretch.count + 1, run.scheduled_for
            continue
        if stretch:
            yield stretch
        stretch = _Stretch(run, start, end, run.scheduled_for)
    if stretch:
        yield stretch


def _span(run: RunLog, now: datetime) -> tuple[datetime, datetime]:
    start = run.started_at or run.coalesced_from or run.scheduled_for
    if run.status in (Status.MISSED, Status.SKIPPED):
        return start, max(start, run.scheduled_for + INSTANT)
    end = run.finished_at or (now if run.status == Status.RUNNING else run.scheduled_for + INSTANT)
    return start, max(start, end)


def _tone(stretch: _Stretch) -> str:
    return "missed" if stretch.first.status == Status.MISSED else run_tone(stretch.first)


def _band(stretch: _Stretch, site: str) -> Band:
    run, css = stretch.first, f"sched-{_tone(stretch)}"
    if stretch.count > 1:
        words = counted_words({run.status: stretch.count}, dict(Status.choices))
        url = address_of_runs(site, run.job_id, run.scheduled_for, stretch.last_slot + INSTANT)
        return Band(stretch.start, stretch.end, css, words, url=url)
    title = f"{run.scheduled_for.astimezone(UTC):%H:%M:%S} UTC · {run_word(run.status, run.errors)}"
    took, url = lasted(run.duration), address_of(site, "runlog_change", run.pk)
    return Band(stretch.start, stretch.end, css, f"{title} · {took}" if took else title, run.scheduled_for, url)


def _future(job: Job, now: datetime, begin: datetime | None, site: str) -> list[Band]:
    end, url = now + DAY, _url(job, site)
    if begin is None or begin >= end:
        return []
    if (wait := after_run(job)) and not _is_frequent(job):
        return _after_run(now + wait, wait, url)
    slots = slots_to_come(job, DENSE + 2, now, held_until=begin)
    if _is_often(job, [at for at in slots if begin <= at <= end]):
        return [_dense(job, begin, end, url)]
    starts = sorted({start_of(job, slot) for slot in slots})  # one of several slots that it puts off
    shown = [at for at in starts if begin <= at <= end]
    return [Band(at, at + INSTANT, "sched-calm", f"{at.astimezone(UTC):%H:%M} UTC", at, url) for at in shown]


def _is_often(job: Job, slots: Sequence[datetime]) -> bool:
    """Whether a job starts too often in the day to be drawn start by start."""
    return len(slots) > DENSE or (bool(slots or after_run(job)) and _is_frequent(job))


def _dense(job: Job, begin: datetime, end: datetime, url: str) -> Band:
    bounds, begin = bounds_of(job), max(begin, put_off_until(job) or begin)
    title = _("More than {count} starts: {words}").format(count=DENSE, words=job.schedule.describe(_))
    return Band(max(begin, bounds.first or begin), min(end, bounds.last or end), "sched-dense", title, url=url)


def _after_run(at: datetime, wait: timedelta, url: str) -> list[Band]:
    """Return the first slot that a run leads to, were it to end now; none beyond the day."""
    words = _("{time} after the run that goes on").format(time=lasted(wait))
    return [Band(at, at + INSTANT, "sched-calm", words, url=url)] if wait <= DAY else []


def _is_frequent(job: Job) -> bool:
    """Whether a job whose ends decide on its next slot, so that no further one is known, starts all the time."""
    return job.schedule.from_completion and bool(job.schedule.period) and DAY / job.schedule.period > DENSE
