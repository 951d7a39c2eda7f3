"""How runs end, and what one pass over ended runs has settled."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from math import ceil
from typing import Any

from scheduler.models import JobEvent, RunLog, Status

NO_TIME = timedelta(0)
MOST_ERRORS = 2**63 - 1
"""What a column holds."""
UNTIL_ASKED_AGAIN = timedelta(seconds=30)
"""For so long a run waits whose gate was closed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How a run ended. `status` is final, or `pending` for a run that waits for its gate.

    `totals["errors"]` above 0 counts as a failure.
    """

    status: str
    started_at: datetime
    finished_at: datetime
    result: str = ""
    error: str = ""
    error_class: str = ""
    """The dotted path of the class of what the task raised."""
    return_value: Any = None
    """What a task of Django Tasks returned, as JSON has it."""
    log: str = ""
    reason: str = ""
    postponed_by: timedelta = NO_TIME
    totals: dict[str, Any] | None = None
    progress: dict[str, Any] | None = None
    state: dict[str, Any] | None = None
    """What the job keeps; None where the run could not say it, and what it saved while it lived counts."""
    blameless: bool = False
    """Lost because its process was asked to stop: no fault of the task, and no attempt is spent."""
    exception: BaseException | None = field(default=None, compare=False, repr=False)
    """What the task raised, where it ran in this process; for the log."""
    called: bool = True
    """Whether the task was called at all: a run that was put off before that is not the last run of its job."""

    @property
    def ran(self) -> bool:
        """Whether the task was begun: not behind a closed gate, nor where its slot lock said no."""
        return self.called and self.status not in (Status.SKIPPED, Status.PENDING)

    @property
    def waits(self) -> bool:
        """Whether the run has not ended: its gate is closed, and will be asked again."""
        return self.status == Status.PENDING

    @property
    def leaves_state(self) -> bool:
        """Whether what the run saved while it lived, which stands in its row, is what the job keeps."""
        return self.ran and self.state is None

    @property
    def errors(self) -> int:
        """How many errors the task has reported in its totals; a part of one is one."""
        told = self.totals.get("errors", 0) if self.totals else 0
        return min(ceil(told), MOST_ERRORS) if told > 0 else 0

    @property
    def failed(self) -> bool:
        """Whether the outcome counts as a failure for backoff and breaker."""
        if self.status == Status.SUCCEEDED:
            return self.errors > 0
        return self.status in (Status.FAILED, Status.TIMED_OUT)


@dataclass(frozen=True, slots=True)
class Finished:
    """The end of a run: the run as its claim wrote it, and how it ended."""

    run: RunLog
    outcome: Outcome

    @property
    def may_go_again(self) -> bool:
        """Whether a further attempt may follow, unless the run was asked to stop: only its row tells that."""
        has_retries = getattr(self.run.job.policy, "retries", 0) > 0
        return self.outcome.status in (Status.LOST, Status.POSTPONED) or (self.outcome.failed and has_retries)


@dataclass(slots=True)
class Settled:
    """What one pass wrote: runs that ended, slots that passed during them, jobs whose breaker changed, stale ends."""

    finished: list[RunLog] = field(default_factory=list)
    skipped: list[RunLog] = field(default_factory=list)
    broken: list[RunLog] = field(default_factory=list)
    recovered: list[RunLog] = field(default_factory=list)
    stale: list[int] = field(default_factory=list)
    events: list[JobEvent] = field(default_factory=list)
    promised: int = 0
    """How many attempts and dependent jobs wait to be claimed because of it."""
    held: dict[int, datetime] = field(default_factory=dict)
    """By job, until when attempts that follow hold a place of it: another end of the pass finds no row of them yet."""

    def __iadd__(self, other: "Settled") -> "Settled":
        self.finished += other.finished
        self.skipped += other.skipped
        self.broken += other.broken
        self.recovered += other.recovered
        self.stale += other.stale
        self.promised += other.promised
        return self
