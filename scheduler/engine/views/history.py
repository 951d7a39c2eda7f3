"""History: what happened to a job besides runs, in words: by whom, why, from which value to which."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Q, QuerySet, Subquery
from django.db.models.functions import Coalesce
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from scheduler.engine.base import Engine
from scheduler.engine.events import CODE, SCHEDULER, kept_kwargs
from scheduler.engine.views.datetimes import said
from scheduler.exceptions import ConfigurationError
from scheduler.models import EVERYTHING, EventKind, Job, JobEvent
from scheduler.models.stored import read_schedule
from scheduler.policy.codec import read_option
from scheduler.safetext import visible
from scheduler.schedules.duration import format_duration

POLICY = "policy."


@dataclass(frozen=True, slots=True)
class Change:
    """A field that an edit changed, with its old and new value in words; without an old one where it is not told."""

    field: str
    old: str
    new: str

    def __str__(self) -> str:
        return f"{self.field}: {self.old} → {self.new}" if self.old else f"{self.field}: {self.new}"


def told_kwargs(kwargs: Any) -> Any:
    """Return keyword arguments as the history tells them: without what looks secret, and no longer than it keeps."""
    return kept_kwargs(kwargs)


@dataclass(frozen=True, slots=True)
class Happened:
    """One event in words: of what (empty for the job itself), what happened, by whom, why, and what changed."""

    at: datetime
    kind: str
    of: str
    what: str
    by: str
    more: str
    changes: tuple[Change, ...]

    @property
    def details(self) -> str:
        """Everything but when, what and by whom, in one line."""
        return "; ".join(filter(None, (self.more, *map(str, self.changes))))

    def without_kwargs(self) -> "Happened":
        """Return it for those who may not read keyword arguments: only that they changed."""
        hidden = Change("kwargs", "", _("changed"))
        return replace(self, changes=tuple(hidden if one.field == "kwargs" else one for one in self.changes))

    def __str__(self) -> str:
        words = _("{what} by {actor} at {at}").format(what=self.what, actor=self.by, at=said(self.at))
        return ": ".join(filter(None, (self.of, words, self.details)))


def events_of(job: Job) -> QuerySet[JobEvent]:
    """Return what happened to a job, to its group and to everything since it was created, the newest first."""
    events = since_creation(job).exclude(kind=EventKind.PRUNED)
    return events.filter(Q(job=job) | Q(job__isnull=True, name__in={EVERYTHING, job.in_group}))


def since_creation(job: Job) -> QuerySet[JobEvent]:
    """Return all events since a job was created, the newest first, and whenever it was, how far they are pruned.

    A database that was restored may give the id of a job that is gone, of which it has events, to a new one.
    """
    events = JobEvent.objects.using(Engine().using).order_by("-id")
    created = events.filter(job=job, kind=EventKind.CREATED).values("id")[:1]
    return events.filter(Q(kind=EventKind.PRUNED) | Q(id__gte=Coalesce(Subquery(created), 0)))


def events_of_name(name: str) -> QuerySet[JobEvent]:
    """Return what happened to the jobs that once had a name, also those that have another one by now, or are gone."""
    events = JobEvent.objects.using(Engine().using).order_by("-id")
    ids = events.filter(name=name, job__isnull=False).values("job").distinct().order_by()
    return events.filter(job__in=list(ids.values_list("job", flat=True)))


def renamed_since(name: str) -> Job | None:
    """Return the job that once had this name and has another one by now; None where there is none."""
    renamed = JobEvent.objects.using(Engine().using).filter(name=name, kind=EventKind.RENAMED).order_by("-id").first()
    return Job.objects.using(Engine().using).filter(pk=renamed.job_id or 0).first() if renamed else None


def told_of_name(name: str) -> str:
    """Say what became of the job that had a name; empty where none had it. In English, for errors."""
    events = JobEvent.objects.using(Engine().using).filter(name=name, job__isnull=False)
    last = events.filter(kind__in=(EventKind.DELETED, EventKind.RENAMED)).order_by("-id").first()
    if last is None:
        return ""
    by = f" by {last.actor}" if last.actor else ""
    if last.kind == EventKind.RENAMED:
        return f"It was renamed to {last.data.get('new')!r} at {said(last.at)}{by}."
    return f"It was deleted at {said(last.at)}{by}."


def in_words(event: JobEvent) -> Happened:
    """Return an event in words of the language in use."""
    return Happened(
        at=event.at,
        kind=event.kind,
        of=_of(event),
        what=str(event.get_kind_display()),
        by=actor_words(event.actor),
        more=visible("; ".join(filter(None, _more(event))), lines=True),
        changes=tuple(_visible(change) for change in _changes(event)),
    )


def _visible(change: Change) -> Change:
    return Change(visible(change.field), visible(change.old, lines=True), visible(change.new, lines=True))


def actor_words(actor: str) -> str:
    """Return who it was."""
    return {CODE: _("the code"), SCHEDULER: _("the scheduler"), "": _("code that names no user")}.get(
        actor, visible(actor)
    )


def _of(event: JobEvent) -> str:
    if event.job_id is not None:
        return ""
    return _("group {name}").format(name=visible(event.name)) if event.name else _("everything")


def _more(event: JobEvent) -> Iterator[str]:
    if until := instant_in(event, "until"):
        yield _("until {until}").format(until=said(until))
    yield event.reason
    if "run" in event.data:
        yield _("run {run}").format(run=event.data["run"])
    if isinstance(number := event.data.get("rows"), int):
        yield ngettext("%d row", "%d rows", number) % number


def _changes(event: JobEvent) -> Iterator[Change]:
    if "old" in event.data:
        old, new = event.data["old"], event.data.get("new")
        yield Change(str(_("name") if event.kind == EventKind.RENAMED else _("value")), str(old), str(new))
    changes = event.data.get("changes")
    for field, values in changes.items() if isinstance(changes, dict) else ():
        if isinstance(values, dict):
            yield Change(field, value_words(field, values.get("old")), value_words(field, values.get("new")))


def value_words(field: str, value: Any) -> str:
    """Return a value that an event keeps of a field, as people write it."""
    if field == "schedule" and isinstance(value, dict):
        return str(read_schedule(json.dumps(value)))
    if field.startswith(POLICY):
        value = _option(field.removeprefix(POLICY), value)
    match value:
        case None | "":
            return _("none")
        case timedelta():
            return format_duration(value)
        case datetime():
            return said(value)
        case dict() | list():
            return json.dumps(value, ensure_ascii=False)
    return str(value)


def _option(name: str, value: Any) -> Any:
    try:
        read = read_option(name, value)
    except (ConfigurationError, TypeError, ValueError):
        return value
    return read if isinstance(read, timedelta | datetime) else value


def instant_in(event: JobEvent, name: str) -> datetime | None:
    """Return an instant that an event keeps; None where it keeps none that can be read, or one of no zone."""
    try:
        at = datetime.fromisoformat(event.data[name])
    except (KeyError, TypeError, ValueError):
        return None
    return at if at.tzinfo else None
