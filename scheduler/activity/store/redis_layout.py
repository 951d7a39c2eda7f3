"""How the store in Redis lays out an entry: its keys, and the texts they hold."""

import json
import re
from dataclasses import dataclass, fields
from datetime import UTC, datetime, timedelta
from typing import Any

from scheduler.activity.entry import Entry
from scheduler.models.activity import EntryState

PREFIX = "scheduler:"
UNREADABLE = (ValueError, TypeError, KeyError, OverflowError, AttributeError, RecursionError)
"""What reading raises for data that another program has written."""
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)
MILLISECOND = timedelta(milliseconds=1)


@dataclass(frozen=True, slots=True)
class Keys:
    """The keys of one user of a job. The braces keep all keys of a job on one node of a cluster."""

    job: str
    user: str

    @property
    def task(self) -> str:
        """The hash of the entry, while it is pending or running."""
        return f"{PREFIX}task:{self._tail}"

    @property
    def last_execution(self) -> str:
        """When the last run ended; for as long as that makes a difference."""
        return f"{PREFIX}last_exec:{self._tail}"

    @property
    def failures(self) -> str:
        """How many runs failed in a row, and until when that counts."""
        return f"{PREFIX}fail_count:{self._tail}"

    @property
    def lock(self) -> str:
        """The token of the holder of the running entry, until its lease is over.

        The locks of slots have the same prefix, and an instant or `fence` where `user` stands here.
        """
        return f"{PREFIX}lock:{{{self.job}}}:user:{_closed(self.user)}"

    @property
    def aside(self) -> str:
        """Where an entry is put that cannot be read."""
        return f"{PREFIX}unreadable:{self._tail}"

    @property
    def _tail(self) -> str:
        return f"{{{self.job}}}:{_closed(self.user)}"

    def all(self) -> list[str]:
        """Return the keys in the order of the scripts."""
        sets = [queue_of(self.job), running_of(self.job)]
        return [self.task, *sets, self.last_execution, self.lock, self.failures]


def pattern_of_failures(job: str) -> str:
    """Return the pattern of the keys that count failures of users of a job."""
    escaped = re.sub(r"([*?\[\]\\^])", r"\\\1", job)
    return f"{PREFIX}fail_count:{{{escaped}}}:*"


def user_of_failures(job: str, key: str) -> str:
    """Return the user whose failures a key counts."""
    tail = key.removeprefix(f"{PREFIX}fail_count:{{{job}}}:")
    return tail.replace("%7D", "}").replace("%25", "%")


def queue_of(job: str) -> str:
    """Return the key of the set of pending users, by when they are due."""
    return f"{PREFIX}queue:{{{job}}}"


def running_of(job: str) -> str:
    """Return the key of the set of running users, by when their lease is over."""
    return f"{PREFIX}running:{{{job}}}"


def aside_of(job: str) -> str:
    """Return the key of the set of keys that were put aside, so that they are counted without a search."""
    return f"{PREFIX}aside:{{{job}}}"


def expected(old: Entry | None) -> str:
    """Return what a swap must find: the version of the hash, else the last execution, else nothing."""
    if old is None:
        return ""
    return _text(old.last_executed_at if old.state == EntryState.DONE else old.version)


def expiring(entry: Entry) -> list[str | int]:
    """Return last execution, lock and failures, each with its milliseconds; empty texts for what there is not.

    The lengths come from instants of one clock, ours: that of Redis may be wrong.
    """
    executed_at, until = entry.last_executed_at, entry.failures_until
    return [
        _text(executed_at),
        _milliseconds(executed_at, entry.wake_at),
        entry.lock_token,
        _milliseconds(entry.taken_at, entry.wake_at),
        f"{entry.failures} {_text(until)}" if until else "",
        _milliseconds(executed_at or entry.created_at, until),
    ]


def remembered(user_key: str, last_execution: str | None, failures: str | None) -> Entry | None:
    """Return what is left of an entry that is done: its run knew of all that the user did."""
    executed_at = instant(last_execution)
    count, _, until_text = (failures or "0").partition(" ")
    until = instant(until_text)
    known = executed_at or until
    if known is None:
        return None
    return Entry(
        user_key=user_key,
        state=EntryState.DONE,
        wake_at=until or known,
        created_at=known,
        last_activity_at=known,
        events=0,
        last_executed_at=executed_at,
        failures=int(count),
        failures_until=until,
    )


def entry_of(columns: dict[str, str], user: str) -> Entry:
    """Read the hash of the entry of a user; raises one of UNREADABLE for one that is none."""
    "".join(columns.values()).encode()  # bytes that are no text
    entry = Entry(**{name: read(columns[name]) for name, read in READ.items() if name in columns})
    if entry.user_key != user or entry.state not in (EntryState.PENDING, EntryState.RUNNING):
        raise ValueError(f"it is {entry.state!r} and of {entry.user_key!r}")
    if not isinstance(entry.ids, dict):
        raise TypeError(f"its ids are {entry.ids!r}")
    if entry.wake_at is None or entry.created_at is None or entry.last_activity_at is None:
        raise ValueError("it lacks an instant")
    return entry


def columns_of(entry: Entry) -> dict[str, str]:
    """Return the hash of an entry."""
    return {name: _text(getattr(entry, name)) for name in READ}


def microseconds(at: datetime) -> int:
    """Return an instant as whole microseconds since 1970: a score of a set keeps these exactly until 2255."""
    return (at - EPOCH) // MICROSECOND


def instant(text: str | int | None) -> datetime | None:
    """Return the instant of so many microseconds since 1970; None for an empty text."""
    return EPOCH + int(text) * MICROSECOND if text else None


def _closed(user_key: str) -> str:
    """A brace within a user key could end the name of the job early: two jobs could share a key."""
    return user_key.replace("%", "%25").replace("}", "%7D")


def _text(value: object) -> str:
    if isinstance(value, datetime):
        return str(microseconds(value))
    if isinstance(value, dict):
        return json.dumps(value)
    return "" if value is None else str(value)


def _milliseconds(start: datetime | None, end: datetime | None) -> int:
    """How long a key lives: no shorter than from the one instant to the other."""
    return 1 if start is None or end is None else max(1, -((start - end) // MILLISECOND))


BY_TYPE: dict[Any, Any] = {str: str, int: int, dict[str, Any]: json.loads}
BY_TYPE |= {datetime: instant, datetime | None: instant}
READ = {field.name: BY_TYPE[field.type] for field in fields(Entry)}
"""What reads each field of an entry from its text."""
