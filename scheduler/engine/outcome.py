"""How runs end, and what one pass over ended runs has settled."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from scheduler.models import RunLog, Status

NO_TIME = timedelta(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How a run ended. `status` is final; `totals["errors"]` above 0 counts as a failure."""

    status: str
    started_at: datetime
    finished_at: datetime
    result: str = ""
    error: str = ""
    log: str = ""
    reason: str = ""
    postponed_by: timedelta = NO_TIME
    totals: dict[str, Any] | None = None
    progress: dict[str, Any] | None = None
    state: dict[str, Any] | None = None
    blameless: bool = False
    """Lost because its process was asked to stop: no fault of the task, and no attempt is spent."""
    called: bool = True
    """Whether the task was called at all: a run that was put off before that is not the last run of its job."""

    @property
    def ran(self) -> bool:
        """Whether the task was begun: not behind a closed gate, nor where its slot lock said no."""
        return self.called and self.status != Status.SKIPPED

    @property
    def failed(self) -> bool:
        """Whether the outcome counts as a failure for backoff and breaker."""
        if self.status == Status.SUCCEEDED:
            return self.totals is not None and self.totals.get("errors", 0) > 0
        return self.status in (Status.FAILED, Status.TIMED_OUT)


@dataclass(frozen=True, slots=True)
class Finished:
    """The end of a run: the run as its claim wrote it, and how it ended."""

    run: RunLog
    outcome: Outcome


@dataclass(slots=True)
class Settled:
    """What one pass wrote: runs that ended, slots that passed meanwhile, jobs whose breaker changed, stale ends."""

    finished: list[RunLog] = field(default_factory=list)
    skipped: list[RunLog] = field(default_factory=list)
    broken: list[RunLog] = field(default_factory=list)
    recovered: list[RunLog] = field(default_factory=list)
    stale: list[int] = field(default_factory=list)
    promised: int = 0
    """How many attempts and dependent jobs wait to be claimed because of it."""

    def __iadd__(self, other: "Settled") -> "Settled":
        self.finished += other.finished
        self.skipped += other.skipped
        self.broken += other.broken
        self.recovered += other.recovered
        self.stale += other.stale
        self.promised += other.promised
        return self
