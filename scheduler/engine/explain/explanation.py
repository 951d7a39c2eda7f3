"""Explanation: the answer to “why did it not run?”, as a value."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from scheduler.models import RunLog
from scheduler.schedules.instants import instant_text

if TYPE_CHECKING:
    from scheduler.engine.explain.evidence import Evidence


class Verdict(StrEnum):
    """What became, or will become, of the slot at an instant."""

    RAN = "ran"
    FAILED = "failed"
    RUNNING = "running"
    PENDING = "pending"
    """An attempt is promised, or the start is put off, and its time is still to come."""
    POSTPONED = "postponed"
    LOST = "lost"
    CANCELLED = "cancelled"
    SKIPPED = "skipped"
    MISSED = "missed"
    COALESCED = "coalesced"
    """Counted on a run of a later slot."""
    NOT_A_SLOT = "not_a_slot"
    BEFORE_CREATION = "before_creation"
    PAUSED = "paused"
    BROKEN = "broken"
    DISABLED = "disabled"
    ORPHANED = "orphaned"
    INVALID = "invalid"
    NO_INSTANCE = "no_instance"
    UNDECIDED = "undecided"
    """Due, and the next tick or the end of the living run decides."""
    WILL_RUN = "will_run"
    NOT_PLANNED = "not_planned"
    """The schedule has the slot, but the job was, or is, planned past it."""
    PRUNED = "pruned"


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """The answer: one word for programs, one sentence for people, and what it rests on.

    `slot` is the slot that was meant (None when the instant is none), `nearest_before` and `nearest_after` are the
    slots around it, `run` is the row of the ledger that decided. `details` is JSON-ready.
    """

    verdict: Verdict
    sentence: str
    job: str
    at: datetime
    run: RunLog | None = None
    slot: datetime | None = None
    nearest_before: datetime | None = None
    nearest_after: datetime | None = None
    details: dict[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Return the answer as JSON-ready data; instants in UTC, as RFC 3339 says."""
        instants = {name: getattr(self, name) for name in ("at", "slot", "nearest_before", "nearest_after")}
        return {
            "job": self.job,
            "verdict": str(self.verdict),
            "sentence": self.sentence,
            "run": self.run.pk if self.run else None,
            **{name: instant_text(at) if at else None for name, at in instants.items()},
            "details": self.details,
        }


@dataclass(frozen=True, slots=True)
class Finding:
    """What one of the questions found out."""

    verdict: Verdict
    sentence: str
    run: RunLog | None = None
    details: dict[str, Any] = field(default_factory=dict)


Question = Callable[["Evidence"], Finding | None]
"""Looks at one thing that may decide the matter."""
