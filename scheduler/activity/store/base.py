"""The store of activities: it keeps the entries of users, and changes each only from a state that was read."""

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from scheduler.activity.entry import Entry
from scheduler.exceptions import ActivityStoreUnavailable
from scheduler.models import Job

__all__ = ["ActivityStore", "ActivityStoreUnavailable"]


class ActivityStore(Protocol):
    """Entries by (job, user). Every method raises ActivityStoreUnavailable, or a database's own error.

    To change an entry, read it, make the new one from it and swap them; the swap fails if another writer was faster.
    """

    in_database: bool
    """Whether a transaction of the database of the jobs covers it; then every call is made within one that writes."""

    def find(self, job: Job, user_key: str) -> Entry | None:
        """Return the entry of a user, locked for this transaction; None when there is none."""
        ...

    def swap(self, job: Job, old: Entry | None, new: Entry) -> bool:
        """Put `new` in the place of `old`; False, and nothing is changed, when that is not there any more."""
        ...

    def is_idle(self, jobs: Sequence[Job], now: datetime) -> bool:
        """Return whether no entry of the jobs is running, due, or to be forgotten."""
        ...

    def due(self, job: Job, now: datetime, limit: int) -> list[Entry]:
        """Return at most `limit` pending entries that are due, the longest waiting first, without those in use."""
        ...

    def running(self, job: Job) -> list[Entry]:
        """Return the entries whose runs go on, without those in use."""
        ...

    def next_due_at(self, jobs: Sequence[Job]) -> datetime | None:
        """Return when the first of the pending entries of the jobs is due, which may be past; None without any."""
        ...

    def forget(self, job: Job, now: datetime) -> None:
        """Drop what is remembered of users who have done nothing for so long that it makes no difference."""
        ...

    def depths(self, jobs: Sequence[Job]) -> dict[str, int]:
        """Return how many entries of each job, by its name, are pending."""
        ...

    def failed(self, job: Job, least: int, now: datetime, limit: int) -> list[Entry]:
        """Return at most `limit` entries, in any state, with `least` failures or more that still count."""
        ...

    def set_aside(self, jobs: Sequence[Job]) -> dict[str, int]:
        """Return how many entries of each job, by its name, were put aside because they could not be read."""
        ...

    def close(self) -> None:
        """Let go of connections."""
        ...
