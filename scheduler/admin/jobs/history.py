"""The history of a job as rows of a table: what happened to it besides runs, with old and new values."""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.utils.safestring import SafeString

from scheduler.admin.badges import badge
from scheduler.admin.times import instant, with_times, zone_of
from scheduler.engine.views.history import Change, events_of, in_words
from scheduler.models import EventKind, Job, JobEvent

OPEN, ON_PAGE, MOST = 10, 50, 1000
"""Events that stand open on the page of the job, those on it with the folded ones, and those on their own page."""

K = EventKind
LOOKS: dict[str, tuple[str, str]] = {
    K.CREATED: ("calm", "✚"),
    K.EDITED: ("calm", "✎"),
    K.RENAMED: ("calm", "✎"),
    K.ENABLED: ("good", "▶"),
    K.DISABLED: ("quiet", "○"),
    K.PAUSED: ("warn", "❚❚"),
    K.RESUMED: ("good", "▶"),
    K.BROKEN: ("bad", "✖"),
    K.RESET: ("good", "↺"),
    K.RECOVERED: ("good", "✔"),
    K.ORPHANED: ("warn", "?"),
    K.RETURNED: ("good", "✔"),
    K.INVALID: ("bad", "⚠"),
}
OTHER_LOOK = ("quiet", "•")
OF_RUNS = (K.BROKEN, K.RECOVERED)
"""What is told of these is told of a run."""
NO_RUN = 0
"""The run of an event that should name one, and does not: only a person who sees every run is told more of it."""
HIGHEST_ID = 2**63 - 1

Hidden = Callable[[Job, Collection[int]], set[int]]
"""Returns which of some runs of a job a person may not see."""


@dataclass(frozen=True, slots=True)
class Line:
    """One event as a row of the table."""

    at: SafeString
    badge: SafeString
    by: str
    more: SafeString
    changes: tuple[Change, ...]


def history_on_page(job: Job, *, hidden: Hidden, kwargs: bool) -> dict[str, Any]:
    """Return what the page of a job tells of its history. One query, and one for hidden runs."""
    lines = lines_of(job, ON_PAGE + 1, hidden=hidden, kwargs=kwargs)
    return {"history": lines[:OPEN], "older": lines[OPEN:ON_PAGE], "more_history": len(lines) > ON_PAGE}


def lines_of(job: Job, most: int, *, hidden: Hidden, kwargs: bool) -> list[Line]:
    """Return the newest events of a job; of runs, and the values of keyword arguments, only where that is allowed."""
    zone, events = zone_of(job, settings.TIME_ZONE), list(events_of(job)[:most])
    unseen = hidden(job, {run for event in events if (run := _run_of(event)) is not None})
    return [_line(event, zone, runs=_run_of(event) not in unseen, kwargs=kwargs) for event in events]


def _run_of(event: JobEvent) -> int | None:
    """Return the run that an event tells of; None where it tells of none."""
    if event.kind not in OF_RUNS and "run" not in event.data:
        return None
    return named_run(event.data.get("run"))


def named_run(run: Any) -> int:
    """Return the key of a run that an event names, `NO_RUN` for what is no key."""
    return run if type(run) is int and NO_RUN < run <= HIGHEST_ID else NO_RUN


def _line(event: JobEvent, zone: str, *, runs: bool, kwargs: bool) -> Line:
    words, (tone, icon) = in_words(event), LOOKS.get(event.kind, OTHER_LOOK)
    more = words.more if runs else ""
    return Line(
        at=instant(event.at, zone=zone),
        badge=badge(tone, icon, f"{words.of}: {words.what}" if words.of else words.what),
        by=words.by,
        more=with_times(more),
        changes=words.changes if kwargs else words.without_kwargs().changes,
    )
