"""Words: what a notice says, in the language in use. They are made when it is written, and stored with it."""

from collections.abc import Collection
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

from django.utils import translation
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from scheduler.engine.explain.explain_slot import SECOND, explain_slot, explain_text
from scheduler.engine.views.datetimes import local, said, zone_of_schedule
from scheduler.engine.views.history import actor_words, events_of, in_words
from scheduler.exceptions import ConfigurationError
from scheduler.models import EventKind, Job, JobEvent, RunLog, Status, Told, Trigger
from scheduler.notifications.found import Found, run_of
from scheduler.safetext import masked_head, visible

LONGEST_TITLE, LONGEST_CAUSE, LONGEST_ERROR = 200, 800, 300
MOST_CHANGES = 5
CHANGES = (EventKind.EDITED, EventKind.RENAMED, EventKind.ENABLED, EventKind.RESUMED, EventKind.ZONE_CHANGED)
"""Events that may be why a job fails that succeeded before."""


def texts_of(found: Found, languages: Collection[str], now: datetime, *, fully: bool) -> dict[str, dict[str, Any]]:
    """Return what is told in each language; without cause and changes unless `fully`, which takes queries."""
    run = run_of(found) if fully else found.run
    found.run = run
    texts = {}
    for language in languages:
        with translation.override(language):
            texts[language] = {"title": cut(_title(found), LONGEST_TITLE), "times": _times(found, run)}
            if fully:
                texts[language] |= _reasons(found, run, now)
    return texts


def texts_of_end(
    kind: Told, name: str, job: Job | None, now: datetime, languages: Collection[str], *, more: dict[str, Any]
) -> dict[str, dict[str, Any]]:
    """Return what is told when an outage is over: `more` says how it ended."""
    texts = {}
    for language in languages:
        with translation.override(language):
            texts[language] = {
                "title": cut(_title_of_end(kind, name, more), LONGEST_TITLE),
                "times": when(now, zone_of_schedule(job.schedule) if job else None),
            }
    return texts


def when(at: datetime | None, zone: ZoneInfo | None = None) -> str:
    """Return an instant by the clocks of a zone with its offset and its name, and in UTC: none of them is mistaken.

    Such as `2026-11-28 03:00 +05:30 (Asia/Kolkata), 2026-11-27 21:30 UTC`.
    """
    if at is None:
        return _("an unknown time")
    utc = said(at, ZoneInfo("UTC"))
    clock = local(at, zone)
    offset = f"{clock:%z}"
    if clock.utcoffset() == UTC.utcoffset(None):
        return utc
    name = str(clock.tzinfo)
    return f"{clock:%Y-%m-%d %H:%M}{f':{clock:%S}' if clock.second else ''} {offset[:3]}:{offset[3:5]} ({name}), {utc}"


def cut(text: str, longest: int) -> str:
    """Return a text of one line without passwords and control characters, of bounded length."""
    line = visible(" ".join(masked_head(text, longest)[: 4 * longest].split()))
    return line if len(line) <= longest else line[: longest - 1] + "…"


def _title(found: Found) -> str:
    name, count = found.job.shown_name, found.count
    if found.problem is not None:
        return found.problem.said()
    match found.kind:
        case Told.BROKEN:
            words = ngettext("%d failure", "%d failures in a row", count) % count
            text = _("{job} is broken after {failures}, and runs no more until it is reset")
            if found.job.policy.breaker_probe_after:
                text = _("{job} is broken after {failures}, and runs no more until it is reset or a probe succeeds")
            return text.format(job=name, failures=words)
        case Told.FAILED:
            if count <= 1:
                return _("{job} has failed").format(job=name)
            return _("{job} has failed {count} times in a row").format(job=name, count=count)
        case Told.STUCK:
            return _("{job} is stuck").format(job=name)
        case Told.MISSED:
            words = ngettext("%d slot", "%d slots", count) % count
            return _("{job} has missed {slots}").format(job=name, slots=words)
        case _:
            return _("{job} has lost a run: its process died").format(job=name)


def _title_of_end(kind: Told, name: str, more: dict[str, Any]) -> str:
    if "reset_by" in more:
        return _("{job} was reset by {actor}").format(job=name, actor=actor_words(more["reset_by"]))
    if "status" in more:
        return _("{job} is no longer stuck: its run ended as “{status}”").format(
            job=name, status=dict(Status.choices).get(more["status"], more["status"])
        )
    words = _("{job} works again") if kind is Told.RECOVERED else _("{job} has succeeded again")
    return words.format(job=name)


def _times(found: Found, run: RunLog | None) -> str:
    zone = zone_of_schedule(found.job.schedule)
    if run is not None:
        words = _("Asked for: {time}") if run.trigger == Trigger.MANUAL else _("Slot: {time}")
        return words.format(time=when(run.scheduled_for, zone))
    return _("Since {time}").format(time=when(found.since, zone)) if found.since else ""


def _reasons(found: Found, run: RunLog | None, now: datetime) -> dict[str, Any]:
    error = visible((run.error or run.reason).strip().rpartition("\n")[2]) if run else ""
    cause = cut(_cause(found, run, now), LONGEST_CAUSE)
    error = cut(error, LONGEST_ERROR)
    return {"cause": cause, "error": "" if error and error in cause else error, "changes": _changes(found.job)}


def _cause(found: Found, run: RunLog | None, now: datetime) -> str:
    """Why, in the words of `--why`. A run by hand has no slot that could be explained: its error says why."""
    if run is not None and run.trigger == Trigger.MANUAL:
        return _("Run {run} was started by {actor}.").format(run=run.pk, actor=actor_words(run.actor))
    try:
        if run is not None:
            return explain_slot(found.job, run.scheduled_for, now=now, tolerance=SECOND).sentence
        return explain_text(found.job, "now", now=now).sentence
    except (ConfigurationError, ValueError, OverflowError):
        return ""


def _changes(job: Job) -> list[str]:
    since = job.last_success_at
    events: Any = events_of(job).filter(kind__in=CHANGES)
    rows: list[JobEvent] = list(events.filter(at__gte=since)[:MOST_CHANGES]) if since else []
    return [cut(str(in_words(row).without_kwargs()), LONGEST_ERROR) for row in rows]
