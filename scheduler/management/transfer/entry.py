"""Entry: one schedule to import, whatever it comes from; and what became of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from scheduler.schedules import Schedule
from scheduler.schedules.instants import instant_text


@dataclass(frozen=True, slots=True, kw_only=True)
class Pause:
    """A pause that goes with a job; `until` is aware, None until it is resumed."""

    until: datetime | None = None
    by: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One schedule of a source. Either it says what its job is, or why there can be none.

    `place` says where it stands in its source. `said` is what `add_job` takes besides name, task and schedule.
    """

    place: str
    name: str = ""
    task: str = ""
    aliases: tuple[str, ...] = ()
    """What the file of `--tasks` may call the task besides."""
    mapped_only: bool = False
    """Whether only that file says which task is meant: `task` is no name of one, such as a command of a shell."""
    schedule: Schedule | None = None
    said: Mapping[str, Any] = field(default_factory=dict)
    args: tuple[Any, ...] = ()
    """Arguments by position, which a job has not: they are named by the signature of the function."""
    whole: bool = False
    """Whether it says everything of its job, so that what it does not say has its default."""
    overridden: frozenset[str] | None = None
    """Where code defined the job: what people had changed of it, in the words of `overridden_fields`."""
    pause: Pause | None = None
    notes: tuple[str, ...] = ()
    """What a person should know of it: what is lost, or means something else than it did."""
    beginnings: tuple[str, ...] = ()
    """Notes on what a job lacks that the import creates or replaces."""
    refused: str = ""
    """Why it cannot be imported."""
    over: str = ""
    """Why there is nothing left to import: it has run, or its end has passed."""


class Outcome(StrEnum):
    """What became of an entry, or would."""

    CREATED = "created"
    REPLACED = "replaced"
    UNCHANGED = "unchanged"
    KEPT = "kept"
    """The job is there and differs, and `--replace` was not given."""
    OVER = "over"
    REFUSED = "refused"

    @property
    def is_carried(self) -> bool:
        """Whether the schedule is here, or would be."""
        return self in (Outcome.CREATED, Outcome.REPLACED, Outcome.UNCHANGED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """What became of an entry. `changes` names the fields in which its job differs, or differed."""

    entry: Entry
    outcome: Outcome
    reason: str = ""
    changes: tuple[str, ...] = ()
    next_slot: datetime | None = None
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready data; without keyword arguments, which may hold secrets."""
        entry, schedule = self.entry, self.entry.schedule
        return {
            "place": entry.place,
            "name": entry.name,
            "task": "" if entry.mapped_only else entry.task,
            "outcome": self.outcome.value,
            "reason": self.reason,
            "schedule": schedule.to_dict() if schedule else None,
            "schedule_text": schedule.to_text() if schedule else "",
            "enabled": bool(entry.said.get("enabled", True)),
            "next_run_at": instant_text(self.next_slot) if self.next_slot else None,
            "changes": list(self.changes),
            "notes": list(self.notes),
        }
