"""Entry: what is known of one user for one job, and what becomes of that. Pure: every change is a new value."""

from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import Any

from scheduler.activity.keys import User
from scheduler.models.activity import EntryState
from scheduler.schedules import OnActivity
from scheduler.schedules.base import NO_TIME


class Ending(StrEnum):
    """How the run of an entry ended."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"
    """A person did not want it: it is not tried again."""
    NOT_RUN = "not_run"
    """Its gate was closed, say: it is due again an interval later, and nothing is counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """The entry of one user; instants are aware UTC. The columns of `Activity` say what each field means."""

    user_key: str
    ids: dict[str, Any] = field(default_factory=dict)
    state: str = EntryState.PENDING
    wake_at: datetime
    created_at: datetime
    last_activity_at: datetime
    events: int = 1
    taken_events: int = 0
    lock_token: str = ""
    taken_at: datetime | None = None
    slot: datetime | None = None
    last_executed_at: datetime | None = None
    failures: int = 0
    failures_until: datetime | None = None
    version: int = 0

    @property
    def has_news(self) -> bool:
        """Whether the user did something that the run which was taken last cannot have known of."""
        return self.events != self.taken_events


def noted(entry: Entry | None, user: User, rules: OnActivity, now: datetime) -> tuple[Entry, bool]:
    """Note an activity; returns the entry with it, and whether the rules let a run be asked for just now.

    They do not within an `interval` of the last execution, nor while the user is blocked. The activity is kept all the
    same, and has its run later: what a user did last must not be lost because of what came before it.
    """
    if entry is None:
        due = now + rules.interval
        return Entry(user_key=user.key, ids=user.ids, wake_at=due, created_at=now, last_activity_at=now), True
    accepted = entry.state == EntryState.RUNNING or not (_is_recent(entry, rules, now) or is_blocked(entry, rules, now))
    known = replace(entry, ids=user.ids, last_activity_at=now, events=entry.events + 1)
    return (_planned(known, rules, now) if entry.state == EntryState.DONE else known), accepted


def taken(entry: Entry, *, token: str, slot: datetime, lease_until: datetime, now: datetime) -> Entry:
    """Take a pending entry: its run knows of all that has been noted until now."""
    return replace(
        entry,
        state=EntryState.RUNNING,
        wake_at=lease_until,
        taken_events=entry.events,
        lock_token=token,
        taken_at=now,
        slot=slot,
    )


def ended(entry: Entry, ending: Ending, rules: OnActivity, now: datetime) -> Entry:
    """End the run of an entry. It is due again after further activity, or if it failed and may be retried."""
    free = replace(entry, lock_token="", taken_at=None, slot=None)
    if ending is Ending.NOT_RUN:
        return _planned(free, rules, now)
    free = replace(free, last_executed_at=now)
    if ending is Ending.SUCCEEDED:
        free = replace(free, failures=0, failures_until=None)
    elif ending is Ending.FAILED:
        before = entry.failures if _counts(entry.failures_until, rules, now) else 0
        free = replace(free, failures=before + 1, failures_until=now + rules.block)
    retries = ending is Ending.FAILED and not is_blocked(free, rules, now)
    return _planned(free, rules, now) if free.has_news or retries else _done(free, rules, now)


def written_off(entry: Entry, rules: OnActivity, now: datetime) -> Entry:
    """End an entry that did not run in time."""
    return _done(replace(entry, taken_events=entry.events), rules, now)


def is_stale(entry: Entry, rules: OnActivity, now: datetime) -> bool:
    """Return whether a pending entry has not run within `task_ttl` of being due."""
    return now - entry.wake_at > rules.task_ttl


def is_blocked(entry: Entry, rules: OnActivity, now: datetime) -> bool:
    """Return whether so many runs of the user have failed in a row that it has to wait."""
    return entry.failures >= rules.max_retries and _counts(entry.failures_until, rules, now)


def _is_recent(entry: Entry, rules: OnActivity, now: datetime) -> bool:
    return entry.last_executed_at is not None and NO_TIME <= now - entry.last_executed_at < rules.interval


def _counts(until: datetime | None, rules: OnActivity, now: datetime) -> bool:
    """Whether failures still count: neither over, nor from a time that the clock was set back behind."""
    return until is not None and NO_TIME < until - now <= rules.block


def _planned(entry: Entry, rules: OnActivity, now: datetime) -> Entry:
    due = now + rules.interval
    if is_blocked(entry, rules, now) and entry.failures_until is not None:
        due = max(due, entry.failures_until)
    return replace(entry, state=EntryState.PENDING, wake_at=due, created_at=now)


def _done(entry: Entry, rules: OnActivity, now: datetime) -> Entry:
    forget_at = max(now + rules.interval, entry.failures_until or now)
    return replace(entry, state=EntryState.DONE, wake_at=forget_at)
