"""Past: the definition that a job had at an instant, and what stopped it then, by what happened to it since."""

import json
from collections.abc import Iterator, Mapping
from copy import copy
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from django.conf import settings
from django.db.models import Q

from scheduler.arguments import is_name
from scheduler.conf import conf
from scheduler.engine.explain.explanation import Verdict
from scheduler.engine.views.history import POLICY, instant_in, since_creation
from scheduler.exceptions import ConfigurationError
from scheduler.models import EVERYTHING, EventKind, Job, JobEvent
from scheduler.models.stored import Unreadable, read_schedule
from scheduler.policy.codec import read_option

K = EventKind
MOST = 1000
"""Events, the newest, that are looked through."""

STOPS: Mapping[EventKind, tuple[Verdict, frozenset[EventKind]]] = {
    K.ORPHANED: (Verdict.ORPHANED, frozenset({K.RETURNED})),
    K.INVALID: (Verdict.INVALID, frozenset({K.RETURNED, K.RESET})),
    K.DISABLED: (Verdict.DISABLED, frozenset({K.ENABLED})),
    K.BROKEN: (Verdict.BROKEN, frozenset({K.RESET, K.RECOVERED})),
    K.PAUSED: (Verdict.PAUSED, frozenset({K.RESUMED})),
}
"""What begins a stop, and what ends it; the first that holds is told."""
REPLANS = frozenset(STOPS).union(*(ends for _, ends in STOPS.values())) | {
    K.EDITED, K.ZONE_CHANGED, K.CLOCK_BACK, K.PLAN_MENDED, K.COUNTER_MENDED,
}  # fmt: skip
"""After these a job is planned afresh."""


@dataclass(frozen=True, slots=True)
class Stop:
    """What stopped a job at an instant: the event that began it, and the one that ended it; None while it goes on."""

    verdict: Verdict
    begun: JobEvent
    ended: JobEvent | None

    @property
    def since(self) -> datetime:
        """When it began. A pause that was prolonged began before that."""
        return instant_in(self.begun, "paused_at") or self.begun.at


@dataclass(frozen=True)
class Past:
    """What happened to a job, its groups and everything; the oldest first."""

    job: Job
    events: tuple[JobEvent, ...]
    zone: str = ""

    @classmethod
    def of(cls, job: Job) -> "Past":
        """Read what happened; a second query only for a job that changed its group."""
        events = since_creation(job)
        names = {EVERYTHING, job.in_group}
        found = list(events.filter(Q(job=job.pk) | Q(job__isnull=True, name__in=names))[:MOST])
        groups = (change["old"] or conf.DEFAULT_GROUP for one in found if (change := _changes(one).get("group")))
        if others := {group for group in groups if is_name(group)} - names:
            found += events.filter(job__isnull=True, name__in=others)[:MOST]
        return cls(job, tuple(sorted(found, key=lambda one: one.pk)))

    def job_at(self, at: datetime) -> tuple[Job, str]:
        """Return the job with the definition that it had at an instant, and TIME_ZONE of that time."""
        then, zone = copy(self.job), settings.TIME_ZONE
        for number in range(len(self.events) - 1, -1, -1):
            event = self.events[number]
            if event.job_id is None or event.at <= at:
                continue
            if event.kind == K.ZONE_CHANGED:
                zone = str(event.data.get("old", zone))
            _undo(then, event, self.events[:number])
        return then, zone

    def stop_at(self, at: datetime, group: str) -> Stop | None:
        """Return what stopped the job, then of `group`, at an instant."""
        own = [one for one in self.events if one.job_id is not None]
        shared = [one for one in self.events if one.job_id is None]
        found = [_stop(own, at, kind) for kind in STOPS]
        found += [_stop([one for one in shared if one.name == name], at, K.PAUSED) for name in (EVERYTHING, group)]
        return next(filter(None, found), None)

    def first_after(self, at: datetime, kinds: frozenset[EventKind]) -> JobEvent | None:
        """Return the first event of some kinds behind an instant."""
        return next((one for one in self.events if one.at > at and one.kind in kinds), None)

    def schedule_changes(self) -> Iterator[JobEvent]:
        """Yield the edits of the schedule."""
        return (one for one in self.events if "schedule" in _changes(one))

    def creation(self) -> JobEvent | None:
        """Return how the job was created, if that is known."""
        return next((one for one in self.events if one.kind == K.CREATED), None)

    def pruned_until(self) -> datetime | None:
        """Return up to when events may be gone; None when all are there."""
        return next((one.at for one in self.events if one.kind == K.PRUNED), None)


def _stop(events: list[JobEvent], at: datetime, kind: EventKind) -> Stop | None:
    verdict, ends = STOPS[kind]
    begun, ended = None, None
    for event in events:
        if event.at > at:
            ended = ended or (event if event.kind in ends else None)
        elif _begins(event, kind):
            begun = event
        elif event.kind in ends:
            begun = None
    return Stop(verdict, begun, ended) if begun and not _is_over(begun, at) else None


def _is_over(pause: JobEvent, at: datetime) -> bool:
    until = instant_in(pause, "until")
    return until is not None and until <= at


def _begins(event: JobEvent, kind: EventKind) -> bool:
    """Whether an event begins a stop of a kind; a job may be created disabled."""
    return event.kind == kind or (kind == K.DISABLED and event.data.get("enabled") is False)


def _changes(event: JobEvent) -> dict[str, Any]:
    """Return the changes of an event; what has another shape, as raw SQL may give it, tells of none."""
    changes = event.data.get("changes")
    given = changes if isinstance(changes, dict) else {}
    return {name: one for name, one in given.items() if isinstance(one, dict) and "old" in one}


def _undo(job: Job, event: JobEvent, before: tuple[JobEvent, ...]) -> None:
    """Give a job the values back that an event took from it."""
    if event.kind == K.RENAMED:
        job.name = event.name
    elif event.kind in (K.ENABLED, K.DISABLED):
        job.enabled = event.kind == K.DISABLED
        # A disabled job has no anchor: the grid that it had until then is what is asked about.
        disabled = event if job.enabled else next((one for one in reversed(before) if one.kind == K.DISABLED), None)
        job.anchor_at = None if disabled is None else instant_in(disabled, "anchor_at")
    elif event.kind == K.EDITED and "changes" not in event.data:  # past the scheduler: the old value is the last known
        _put(job, "schedule", _last_known(before))
    for name, change in _changes(event).items():
        _put(job, name, change["old"])


def _last_known(events: tuple[JobEvent, ...]) -> Any:
    """Return the schedule that the newest of some events tells of."""
    for event in reversed(events):
        if found := event.data.get("schedule") or _changes(event).get("schedule", {}).get("new"):
            return found
    return None


def _put(job: Job, name: str, value: Any) -> None:
    if name == "schedule" and value is not None:
        job.schedule = read_schedule(value if isinstance(value, str) else json.dumps(value))
    elif name == "group":
        job.group = str(value)
    elif name.startswith(POLICY) and not isinstance(job.policy, Unreadable):
        option = name.removeprefix(POLICY)
        try:
            job.policy = replace(job.policy, **{option: read_option(option, value)})
        except (ConfigurationError, TypeError, ValueError):
            return
