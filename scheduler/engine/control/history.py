"""History: what happened to a job, whatever its name was, and what a person no longer wants to see of its runs."""

from datetime import timedelta

from django.db.models import QuerySet

from scheduler.arguments import checked_text, checked_whole, is_name
from scheduler.engine.base import Engine
from scheduler.engine.control.lookup import get_job
from scheduler.engine.db.shared_time import shared_now
from scheduler.engine.events import event, write_events
from scheduler.engine.retention.keep import Retention
from scheduler.engine.retention.prune import Pruned, prune
from scheduler.engine.views.history import events_of, events_of_name, renamed_since
from scheduler.exceptions import UnknownJob
from scheduler.models import EventKind, Job, JobEvent

EVERYTHING = Retention(days=1, failed_days=1, runs=0)
MOST_EVENTS = 1000
AT_ONCE, SECONDS = 10_000, 5.0


def job_once_named(name: str) -> Job:
    """Return the job of this name, else the one that had it before it was renamed; raises UnknownJob as `get_job`."""
    try:
        return get_job(name)
    except UnknownJob:
        if (renamed := renamed_since(name) if is_name(name) else None) is None:
            raise
        return get_job(renamed.name)


def get_job_events(name: str, *, limit: int = 100) -> list[JobEvent]:
    """Return what happened to a job besides runs, to its group and to everything: the newest first, at most `limit`.

    The name may be one that the job had before, or that of a job that is gone. Raises UnknownJob where there never was
    one, and InvalidOption for a limit that is not from 1 to 1,000.
    """
    most = checked_whole("limit", limit, least=1, most=MOST_EVENTS)
    return list(events_by_name(name)[:most])


def events_by_name(name: str) -> QuerySet[JobEvent]:
    """Return all that `get_job_events` returns the newest of."""
    try:
        return events_of(job_once_named(name))
    except UnknownJob:
        events = events_of_name(name) if is_name(name) else None
        if events is None or not events.exists():
            raise
        return events


def clear_history(name: str, *, actor: str = "") -> Pruned:
    """Remove the ended runs of a job, but for the newest of each outcome; counters, plan and open runs stay.

    One call takes at most 10,000 rows or 5 seconds; while `cursor` of the result is not None there are more. Raises
    UnknownJob.
    """
    checked_text("actor", actor)
    engine, job = Engine(), get_job(name)
    tomorrow = shared_now(engine.using) + timedelta(days=1)  # as if all of it were a day old
    pruned = prune(engine, tomorrow, retention=EVERYTHING, job=job, most=AT_ONCE, seconds=SECONDS)
    if pruned.total:
        write_events(engine.using, [event(job, EventKind.CLEARED, None, actor=actor, rows=pruned.total)])
    return pruned
