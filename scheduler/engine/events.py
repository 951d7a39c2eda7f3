"""Events: what happened to jobs and groups besides runs, written in the transaction that changes them.

Nothing here is called for a run that changes no state of its job.
"""

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from operator import attrgetter
from typing import Any

from scheduler.engine.db.bulk import insert_values
from scheduler.engine.db.shared_time import shared_now
from scheduler.models import FAILURES, EventKind, Group, Job, JobEvent, RunLog
from scheduler.models.job_event import LONGEST_REASON
from scheduler.models.stored import Unreadable
from scheduler.policy import Policy
from scheduler.policy.base import options_that_differ
from scheduler.policy.codec import plain
from scheduler.safetext import MASK, is_secret, masked, masked_head, visible, without_secrets
from scheduler.schedules import Schedule
from scheduler.schedules.instants import instant_text

CODE, SCHEDULER = "code", "scheduler"
"""Actors that are no persons: a deploy, and what the scheduler did by itself."""

EDITED = ("task", "schedule", "policy", "group", "priority", "kwargs", "description")
"""Columns whose old and new values an edit keeps."""
PAUSE = ("paused_at", "paused_until", "paused_by", "pause_reason")
TOLD = frozenset({"name", "enabled", "active_runs", "broken_at", "orphaned_at", "problem", *EDITED, *PAUSE})
"""Columns whose change means something for the history."""
LONGEST_VALUE = 2000
"""Characters of keyword arguments that an event keeps."""
LONGEST_NAME = 60
"""Characters of a header or an option whose value stands beside it."""

Columns = Mapping[str, Any]


def event(
    job: Job | Group | None, kind: EventKind, at: datetime | None, *, actor: str = "", reason: str = "", **data: Any
) -> JobEvent:
    """Return an event of a job or a group, not stored yet; no job stands for everything, and no instant for now."""
    return JobEvent(
        job_id=job.pk if isinstance(job, Job) else None,
        name=job.name if job else "",
        kind=kind,
        at=at,  # type: ignore[misc]
        actor=actor[:150],
        reason=_kept_reason(reason) if reason else "",
        data=data,
    )


@lru_cache(maxsize=64)
def _kept_reason(reason: str) -> str:
    """Return a reason as events keep it; many jobs are stopped for the same one at once."""
    return visible(masked_head(reason, LONGEST_REASON)[:LONGEST_REASON])[:LONGEST_REASON]


def write_events(using: str, events: Sequence[JobEvent]) -> None:
    """Store events, in the transaction of the caller; nothing to write costs nothing."""
    if not events:
        return
    if undated := [one for one in events if one.at is None]:
        now = shared_now(using)
        for one in undated:
            one.at = now
    fields = [field for field in JobEvent._meta.concrete_fields if not field.primary_key]
    insert_values(using, fields, list(map(attrgetter(*(field.attname for field in fields)), events)))


def creations(jobs: Iterable[Job], actor: str) -> list[JobEvent]:
    """Return the creation of each job, with the definition that it began with; the jobs know their ids."""
    found = []
    for job in jobs:
        found.append(event(job, EventKind.CREATED, job.created_at, actor=actor, **_beginning(job)))
        if job.problem:
            found.append(event(job, EventKind.INVALID, job.created_at, actor=actor, reason=job.problem))
    return found


def changes(job: Job, columns: Columns, at: datetime | None = None, *, actor: str = "") -> list[JobEvent]:
    """Return what it means for a job that these columns are about to be written; most writes mean nothing."""
    return [event(job, kind, at, **{"actor": actor} | data) for kind, data in _found(job, columns)]


def event_of_run(run: RunLog, kind: EventKind, at: datetime) -> JobEvent:
    """Return what the end of a run meant for its job."""
    failures, error = run.job.consecutive_failures, (run.error or run.reason).strip().rpartition("\n")[2]
    known = {"run": run.pk, "failures": failures, "reason": error} if kind is EventKind.BROKEN else {"run": run.pk}
    return event(run.job, kind, at, actor=SCHEDULER, **known)


def stops_of(job: Job) -> tuple[Any, ...]:
    """Return what stops a job in a state that the scheduler ends or begins by itself."""
    return job.paused_at, job.orphaned_at, job.problem, job.paused_until


def went_on_or_stopped(job: Job, before: tuple[Any, ...], now: datetime) -> list[JobEvent]:
    """Return what has happened to a job whose stops were others `before`: a pause is over, its task is gone or back."""
    paused_at, orphaned_at, problem, paused_until = before
    stood = Job(pk=job.pk, name=job.name, orphaned_at=orphaned_at, problem=problem)
    found = list(changes(stood, {"orphaned_at": job.orphaned_at, "problem": job.problem}, now, actor=SCHEDULER))
    if paused_at and not job.paused_at:
        found.append(event(job, EventKind.RESUMED, min(paused_until, now), actor=SCHEDULER))
    return found


def _found(job: Job, columns: Columns) -> Iterator[tuple[EventKind, dict[str, Any]]]:
    changed = {name for name, new in columns.items() if name in TOLD and new != getattr(job, name)}
    if "name" in changed:
        yield EventKind.RENAMED, {"old": job.name, "new": columns["name"]}
    if edited := dict(_edits(job, columns, changed)):
        yield EventKind.EDITED, {"changes": edited}
    if "enabled" in changed:
        anchor = instant_text(job.anchor_at) if job.anchor_at else None
        yield (EventKind.ENABLED, {}) if columns["enabled"] else (EventKind.DISABLED, {"anchor_at": anchor})
    yield from _of_state(job, columns, changed)


def _of_state(job: Job, columns: Columns, changed: set[str]) -> Iterator[tuple[EventKind, dict[str, Any]]]:
    if "active_runs" in changed:
        yield EventKind.COUNTER_MENDED, {"old": job.active_runs, "new": columns["active_runs"]}
    if was_reset := _is_reset(job, columns):
        yield EventKind.RESET, {}
    if changed.intersection(PAUSE):
        yield (EventKind.PAUSED, pause_data(columns)) if columns["paused_at"] else (EventKind.RESUMED, {})
    if changed.intersection(("orphaned_at", "problem")):
        yield from _of_problems(job, columns, was_reset=was_reset)


def _is_reset(job: Job, columns: Columns) -> bool:
    """Whether a person forgives failures: those that broke the job, or the last one."""
    last_failed = job.last_status in FAILURES or job.last_errors > 0
    return "broken_at" in columns and columns["broken_at"] is None and bool(job.broken_at or last_failed)


def pause_data(columns: Columns) -> dict[str, Any]:
    """Return what the event of a pause holds besides who and when."""
    until, paused_at = columns["paused_until"], columns["paused_at"]
    return {
        "actor": columns["paused_by"],
        "reason": columns["pause_reason"],
        "paused_at": instant_text(paused_at),
        "until": instant_text(until) if until else None,
    }


def _of_problems(job: Job, columns: Columns, *, was_reset: bool) -> Iterator[tuple[EventKind, dict[str, Any]]]:
    is_orphan, problem = bool(columns.get("orphaned_at", job.orphaned_at)), columns.get("problem", job.problem)
    if is_orphan:
        if not job.orphaned_at:
            yield EventKind.ORPHANED, {"reason": problem}
    elif problem and not job.orphaned_at:
        yield EventKind.INVALID, {"reason": problem}
    elif not was_reset:
        yield EventKind.RETURNED, {}


def _edits(job: Job, columns: Columns, changed: Collection[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the old and new value of each column that changes, and of each option of the policy."""
    for name in (one for one in EDITED if one in changed):
        old, new = getattr(job, name), columns[name]
        if isinstance(old, Policy) and isinstance(new, Policy):
            for option in options_that_differ(old, new):
                values = {"old": plain(getattr(old, option)), "new": plain(getattr(new, option))}
                yield f"policy.{option}", values
        else:
            yield name, {"old": _kept(name, old), "new": _kept(name, new)}


def _beginning(job: Job) -> dict[str, Any]:
    names = ("task", "schedule", "enabled", "group", "kwargs")
    return {name: _kept(name, getattr(job, name)) for name in names if getattr(job, name) not in ("", {})}


def _kept(name: str, value: Any) -> Any:
    """Return a value as an event keeps it: JSON, and no password in it."""
    match value:
        case Schedule():
            return value.to_dict()
        case Policy():
            return {option: plain(getattr(value, option)) for option in options_that_differ(Policy(), value)}
        case Unreadable():
            return without_secrets(masked(value.text))
    return kept_kwargs(value) if name in ("kwargs", "description") else value


def kept_kwargs(kwargs: Any) -> Any:
    """Return keyword arguments, or a text, without what looks secret; of long ones the beginning of their JSON."""
    try:
        safe = _without_secrets(kwargs)
    except RecursionError:  # too deep to be looked through
        return "…"
    text = json.dumps(safe, ensure_ascii=False, default=str)
    return safe if len(text) <= LONGEST_VALUE else f"{text[: LONGEST_VALUE - 1]}…"


def _without_secrets(value: Any) -> Any:
    match value:
        case dict():
            return dict(_items_without_secrets(value))
        case list():
            before = [None, *value]  # a header is a pair, an option comes before its value
            return [_hidden(item, _named_secret(name)) for name, item in zip(before, value, strict=False)]
        case str():
            return without_secrets(masked_head(value, LONGEST_VALUE)[:LONGEST_VALUE])
    return value


def _items_without_secrets(values: Mapping[Any, Any]) -> Iterator[tuple[Any, Any]]:
    names_secret = _named_secret(values.get("name") or values.get("key") or values.get("header"))
    for key, item in values.items():
        yield key, _hidden(item, is_secret(str(key)) or (names_secret and key == "value"))


def _hidden(item: Any, is_hidden: bool) -> Any:
    return MASK if item and is_hidden else _without_secrets(item)


def _named_secret(name: Any) -> bool:
    """Whether this is the name of a secret value, and no text that has one in it."""
    return isinstance(name, str) and len(name) <= LONGEST_NAME and name.split() == [name] and is_secret(name)
