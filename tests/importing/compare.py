"""Compare what jobs will run with what the old package would have run."""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

from django.conf import settings
from django.db import connections

from scheduler.models import Job
from scheduler.schedules import Schedule
from tests.importing.maker import BEGIN

OLD = "old"
KEPT = Path(__file__).resolve().parent.parent / "data" / "importing"
"""What the makers made with the releases that its README names."""


@contextmanager
def database_of(sql: str, path: Path) -> Iterator[None]:
    """A database of its own, under the alias `old`, that holds what a package has made."""
    with sqlite3.connect(path) as made:
        made.executescript(f"PRAGMA synchronous = OFF; BEGIN; {sql} COMMIT;")
    made.close()
    engine = {"ENGINE": "django.db.backends.sqlite3", "NAME": str(path)}
    connections.settings[OLD] = {**connections.settings["default"], **engine, "OPTIONS": {}}
    try:
        connections[OLD].connect()  # now: Django's test case allows those aliases only that it has been told of
        yield
    finally:
        connections[OLD].close()
        del connections[OLD], connections.settings[OLD]


def bound(job: Job) -> Schedule:
    found: Schedule = job.schedule.bind(anchor=job.anchor_at, timezone=settings.TIME_ZONE)
    return found


def slots_until(job: Job, until: datetime) -> set[datetime]:
    """Return the slots of a job after BEGIN, to the second."""
    schedule, end = bound(job), min(until, job.policy.ends_at or until)
    found, slot = set(), schedule.next_after(max(BEGIN, job.policy.starts_at or BEGIN) - timedelta(microseconds=1))
    while slot is not None and slot <= end:
        found.add(slot.replace(microsecond=0))
        slot = schedule.next_after(slot)
    return found


def days_that_differ(job: Job, path: Path) -> dict[date, str]:
    """Return the days, by the clock of the job, on which one of the two runs it and the other does not."""
    told = json.loads(path.read_text())[job.name]
    schedule = bound(job)
    ours = slots_until(job, datetime.fromisoformat(told["until"])) - {BEGIN}
    theirs = {datetime.fromisoformat(at).replace(tzinfo=UTC) for at in told["runs"]}
    assert theirs, "a schedule that never runs compares nothing"
    zone = ZoneInfo(schedule.timezone or settings.TIME_ZONE)
    return {at.astimezone(zone).date(): f"{'ours' if at in ours else 'theirs'} {at}" for at in sorted(ours ^ theirs)}


def days_of_change(job: Job, until: datetime) -> set[date]:
    """Return the days on which the clocks of the zone of a job change, and the days after them."""
    zone = ZoneInfo(bound(job).timezone or settings.TIME_ZONE)
    days, at = set(), BEGIN
    while at < until:
        following = at + timedelta(days=1)
        if at.astimezone(zone).utcoffset() != following.astimezone(zone).utcoffset():
            days |= {at.astimezone(zone).date() + timedelta(days=number) for number in (0, 1, 2)}
        at = following
    return days
