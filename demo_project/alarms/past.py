"""A past for the demo: thirty days of runs that never were, so that every page has something to tell at first sight.

Made up, and marked as that: the note of each run says so. Each job has what it would have after thirty days of work:
rows of the newest runs, totals of the days before those that retention would have removed, and counters that agree.
"""

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, time, timedelta
from math import log
from typing import Any

from django.db import transaction
from django.utils import timezone

from demo_project.alarms.habits import FAILURES, HABITS, Habit
from scheduler.engine.db.add import add_rows
from scheduler.engine.db.bulk import insert_runs
from scheduler.engine.db.tally import bucket_of
from scheduler.models import DayTotal, EventKind, Job, JobEvent, RunLog, Status, Tally, Trigger
from scheduler.models.day_total import DAY_AMOUNTS, DAY_KEY, DAY_TOOK_MS
from scheduler.models.run import COUNTERS
from scheduler.models.tally import AMOUNTS, KEY, NOT_MEASURED
from scheduler.policy.misfire import FOUND_LATE

NOTE = "Example: made up when the demo was prepared; this run never was."
DAYS = 30
SEED = 30
SAMPLE = 40
"""So many runs of a day say how all of that day went."""
NIGHTS = {0: (time(2, 50), time(5, 41)), 6: (time(2, 30), time(9, 10)), 13: (time(2, 40), time(3, 55))}
"""When no process ran, by how many nights ago: the newest one that is over, and two before it."""
GRACE = timedelta(hours=3)
"""A daily slot that is found later than this is missed, in this story; an earlier one is caught up."""


@dataclass(slots=True)
class Past:
    """What is made of one job."""

    job: Job
    habit: Habit
    runs: list[RunLog] = field(default_factory=list)
    totals: Counter[tuple[str, str, int]] = field(default_factory=Counter)
    took: Counter[tuple[str, str, int]] = field(default_factory=Counter)


@transaction.atomic
def make_past(now: datetime) -> int:
    """Make the past of all jobs that have habits, and return how many rows of the run log there are; none where
    anything has run before."""
    if RunLog.objects.exists() or Job.objects.filter(last_run_at__isnull=False).exists():
        return 0
    choose, gaps = random.Random(SEED), list(_gaps(now))
    jobs = {job.name: job for job in Job.objects.filter(name__in=[habit.job for habit in HABITS])}
    pasts = [Past(jobs[habit.job], habit) for habit in HABITS if habit.job in jobs]
    for past in pasts:
        _fill(past, now, gaps, choose)
    runs = sorted((run for past in pasts for run in past.runs), key=lambda run: run.finished_at or run.scheduled_for)
    insert_runs("default", runs)
    for past in pasts:
        _count(past, now)
    _tell(now)
    return len(runs)


def _gaps(now: datetime) -> Iterator[tuple[datetime, datetime]]:
    """Yield from when until when no process ran."""
    today = timezone.localtime(now).date()
    newest = 0 if timezone.localtime(now).time() > time(6, 30) else 1
    for ago, (begin, end) in NIGHTS.items():
        day = today - timedelta(days=ago + newest)
        zone = timezone.get_current_timezone()
        yield datetime.combine(day, begin, zone), datetime.combine(day, end, zone)


def _fill(past: Past, now: datetime, gaps: list[tuple[datetime, datetime]], choose: random.Random) -> None:
    kept = now - past.habit.kept
    for day in range(DAYS, 0, -1):
        begin = now - timedelta(days=day)
        if begin + timedelta(days=1) <= kept:
            _add_totals(past, begin, now, gaps, choose)
    missed: dict[tuple[datetime, datetime], list[datetime]] = {}
    for slot in _slots(past, kept, now, choose):
        gap = next((one for one in gaps if one[0] <= slot < one[1]), None)
        if gap is not None:
            missed.setdefault(gap, []).append(slot)
        else:
            past.runs.append(_run(past, slot, slot, now, choose))
    past.runs += [_after_gap(past, gap, slots, now, choose) for gap, slots in missed.items()]


def _slots(past: Past, since: datetime, now: datetime, choose: random.Random) -> Iterator[datetime]:
    """Yield the slots of the rows that are kept: of a calendar those of the schedule, else steps of the habit."""
    last = now - timedelta(minutes=1)
    if past.habit.steps:
        slot = since
        while (slot := slot + timedelta(seconds=choose.choice(past.habit.steps))) < last:
            yield slot.replace(microsecond=0)
        return
    schedule = past.job.schedule.bind(anchor=since, timezone=timezone.get_current_timezone_name())
    slot = schedule.next_after(since)
    while slot is not None and slot < last:
        yield slot
        slot = schedule.next_after(slot)


def _run(past: Past, slot: datetime, start: datetime, now: datetime, choose: random.Random, **columns: Any) -> RunLog:
    status, took = _outcome(past.habit, slot, now, choose)
    failure = choose.choice(FAILURES[past.habit.job]) if status == Status.FAILED else None
    started = start + timedelta(milliseconds=choose.uniform(2, 40))
    return RunLog.of(
        past.job,
        scheduled_for=slot,
        started_at=started,
        finished_at=started + took,
        status=status,
        worker="example",
        note=NOTE,
        result="" if failure else past.habit.result,
        error=failure.error if failure else "",
        error_class=failure.kind if failure else "",
        **columns,
    )


def _after_gap(
    past: Past, gap: tuple[datetime, datetime], slots: list[datetime], now: datetime, choose: random.Random
) -> RunLog:
    """Return the one row that stands for the slots of a night without a process."""
    counted = {"coalesced": len(slots) - 1, "coalesced_from": slots[0] if len(slots) > 1 else None}
    is_missed = past.habit.skips_gaps or (not past.habit.steps and gap[1] - slots[-1] > GRACE)
    if is_missed:
        columns = {"scheduled_for": slots[-1], "status": Status.MISSED, "reason": FOUND_LATE, "note": NOTE}
        return RunLog.of(past.job, **columns, **counted)
    return _run(past, slots[-1], gap[1], now, choose, trigger=Trigger.CATCH_UP, **counted)


def _outcome(habit: Habit, slot: datetime, now: datetime, choose: random.Random) -> tuple[str, timedelta]:
    """Return how a run ended, and how long it took: longer, the newer it is, where the job drifts."""
    age = (now - slot) / timedelta(days=DAYS)
    drift = 1 + (habit.drift - 1) * (1 - age) ** 2
    took = timedelta(seconds=choose.lognormvariate(log(habit.seconds * drift), habit.spread))
    return (Status.FAILED if choose.random() < habit.fails else Status.SUCCEEDED), took


def _add_totals(
    past: Past, begin: datetime, now: datetime, gaps: list[tuple[datetime, datetime]], choose: random.Random
) -> None:
    """Count a day whose rows retention would have removed."""
    open_for = timedelta(days=1) - sum((_within(begin, gap) for gap in gaps), timedelta())
    step = sum(past.habit.steps) / len(past.habit.steps)
    count = round(open_for.total_seconds() / step)
    for place in range(SAMPLE):
        slot = begin + timedelta(days=1) * (place + 0.5) / SAMPLE
        status, took = _outcome(past.habit, slot, now, choose)
        microseconds = took // timedelta(microseconds=1)
        alike = count // SAMPLE + (place < count % SAMPLE)
        key = (timezone.localtime(slot).date().isoformat(), status, bucket_of(DAY_TOOK_MS, microseconds))
        past.totals[key] += alike
        past.took[key] += alike * microseconds


def _within(begin: datetime, gap: tuple[datetime, datetime]) -> timedelta:
    return max(timedelta(), min(begin + timedelta(days=1), gap[1]) - max(begin, gap[0]))


def _count(past: Past, now: datetime) -> None:
    """Write the totals, and make the counters of the job agree with them and with its rows."""
    rows = [(past.job.pk, *key, count, past.took[key]) for key, count in sorted(past.totals.items())]
    for first in range(0, len(rows), 100):
        add_rows("default", DayTotal, DAY_KEY, DAY_AMOUNTS, rows[first : first + 100])
    counts: Counter[str] = Counter()
    for run in past.runs:
        counts[run.status] += 1 + (run.coalesced if run.status == Status.MISSED else 0)
    for (_, status, _), count in past.totals.items():
        counts[status] += count
    tallies = [
        (past.job.pk, str(status), "", NOT_MEASURED, NOT_MEASURED, count, 0, 0) for status, count in counts.items()
    ]
    add_rows("default", Tally, KEY, AMOUNTS, sorted(tallies))
    ended = [run for run in past.runs if run.finished_at is not None]
    last = max(ended, key=lambda run: run.finished_at)
    succeeded = [run.finished_at for run in ended if run.status == Status.SUCCEEDED]
    Job.objects.filter(pk=past.job.pk).update(
        **{COUNTERS[status]: count for status, count in counts.items()},
        created_at=now - timedelta(days=DAYS),
        last_run_at=last.started_at,
        last_finished_at=last.finished_at,
        last_outcome_at=last.finished_at,
        last_status=last.status,
        last_success_at=max(succeeded, default=None),
    )


def _tell(now: datetime) -> None:
    """Let the history begin thirty days ago, and have a pause of one job in it."""
    begun = now - timedelta(days=DAYS)
    JobEvent.objects.filter(kind=EventKind.CREATED).update(at=begun)
    job = Job.objects.filter(name="notify_on_call").first()
    if job is None:
        return
    reason = "The pager service is being replaced. (Example: made up when the demo was prepared.)"
    paused = now - timedelta(days=9, hours=3)
    common: dict[str, Any] = {"job_id": job.pk, "name": job.name, "actor": "admin"}
    data = {"paused_at": paused.isoformat(), "until": None}
    JobEvent.objects.create(**common, kind=EventKind.PAUSED, at=paused, reason=reason, data=data)
    JobEvent.objects.create(**common, kind=EventKind.RESUMED, at=paused + timedelta(hours=2), data={})
