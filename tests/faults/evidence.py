"""What the checker judges by: journal lines, rows of the ledger, jobs, and what was done to whom. Plain values."""

import json
import threading
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.faults.jobs import Spec

RUN_EVENTS = ("start", "end", "fail", "stopped")


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One line of the journal. `seen` is the wall clock as its process saw it."""

    event: str
    runner: int
    mono: float
    wall: float
    job: str = ""
    slot: datetime | None = None
    attempt: int = 0
    token: int = 0
    seen: float = 0.0
    point: str = ""
    user: str = ""
    began: float = 0.0
    """When somebody began to tell what this user did, on the monotonic clock."""

    @property
    def key(self) -> tuple[str, datetime | None, int]:
        return self.job, self.slot, self.attempt


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One row of the ledger."""

    id: int
    job: str
    slot: datetime
    attempt: int
    trigger: str
    status: str
    token: int
    instance: str
    due_at: datetime | None
    started_at: datetime | None
    finished_at: datetime | None
    coalesced: int
    coalesced_from: datetime | None
    reason: str
    note: str
    saved: int | bool = False
    """Whether a state stands on it that its run has saved."""

    @property
    def key(self) -> tuple[str, datetime | None, int]:
        return self.job, self.slot, self.attempt

    @property
    def is_living(self) -> bool:
        return self.due_at is not None and self.status != "pending"


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRow:
    """The scheduler's columns of one job."""

    name: str
    anchor_at: datetime | None
    next_run_at: datetime | None
    wake_at: datetime | None
    stale: bool
    token: int
    active_runs: int
    successes: int
    failures: int
    timeouts: int
    losses: int
    cancellations: int
    skips: int
    misses: int
    state: dict[str, Any]
    orphaned_at: datetime | None
    problem: str
    broken_at: datetime | None
    consecutive_failures: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """What is kept of one user."""

    user_key: str
    state: str
    slot: datetime | None
    events: int
    taken_events: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """Nothing of a job may start from `since` until `until` on the monotonic clock, unless it was claimed before."""

    job: str
    token: int
    """The job's token when the stop had been committed: every later claim has a greater one."""
    since: float
    until: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Outage:
    """A time in which processes could not do as they should although they lived: frozen, locked out or cut off."""

    since: float
    until: float
    runners: frozenset[int] = frozenset()
    """Their pids; none: all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Farewell:
    """The clean stop of one process while others went on, and what was left of it in the database."""

    runner: int
    since: float
    until: float
    left: list[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """The ledger and the instances at one moment."""

    mono: float
    wall: float
    rows: list[Row]
    jobs: list[JobRow]
    instances: dict[str, float]
    """Heartbeats in seconds since 1970, by instance."""
    entries: list[Entry] = field(default_factory=list)

    def job(self, name: str) -> JobRow:
        return next(job for job in self.jobs if job.name == name)


@dataclass(slots=True, kw_only=True)
class Evidence:
    """One round."""

    specs: dict[str, Spec]
    lines: list[Line]
    last: Sample
    """After the clean stop."""
    quiet: Sample | None = None
    """At the end of the quiet period, while all processes live."""
    earlier: list[Sample] = field(default_factory=list)
    dead: dict[int, float] = field(default_factory=dict)
    """When the processes that were killed died, on the monotonic clock."""
    frozen: set[int] = field(default_factory=set)
    outages: list[Outage] = field(default_factory=list)
    farewells: list[Farewell] = field(default_factory=list)
    healed: float = 0.0
    warm: float = 0.0
    """Seconds that processes needed to start: how fast the machine is."""
    clock_moved: bool = False
    """Whether the clock that counts was set: the host's where the database has none of its own."""
    steps: list[float] = field(default_factory=list)
    """When that was, on the monotonic clock."""
    off_plan: set[str] = field(default_factory=set)
    """Jobs whose plan people changed meanwhile: removed from the code, paused, set back. No grid can be followed."""
    stops: list[Stop] = field(default_factory=list)
    """Pauses, and times in which no process had the job in its code."""
    resets: list[tuple[str, float]] = field(default_factory=list)
    """Which broken jobs were reset, and when, on the monotonic clock."""
    starved: bool = False
    """Whether processes could have no threads or descriptors, so that runs failed without a call of their task."""
    left_open: list[str] = field(default_factory=list)
    """What tasks wrote in transactions that they left open, and which was committed all the same."""
    early: float = 0.0
    """How many seconds before its slot a start may be: none, by one clock."""
    behind: float = 0.02
    """How many seconds a process may be behind the clock that counts, which makes its pauses shorter when it learns."""
    ttl: float = 4.0
    heartbeat: float = 0.5
    unclean: list[str] = field(default_factory=list)
    """Processes that did not stop as they should, or ended by themselves."""


class Journal:
    """The lines that tasks wrote, read as they come."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._end = 0
        self._lines: list[Line] = []
        self._lock = threading.Lock()

    def lines(self) -> list[Line]:
        """Return the complete lines, oldest first."""
        with self._lock:
            for text in self._new_lines():
                values = json.loads(text)
                self._lines.append(Line(**{**values, "slot": instant(values.get("slot"))}))
            self._lines.sort(key=lambda line: line.mono)
            return [*self._lines]

    def _new_lines(self) -> list[bytes]:
        if not self._path.exists():
            return []
        with self._path.open("rb") as file:
            file.seek(self._end)
            new = file.read()
        complete = new[: new.rfind(b"\n") + 1]
        self._end += len(complete)
        return complete.splitlines()


def instant(value: Any) -> datetime | None:
    """Return an instant, however a database gives it."""
    if value is None or value == "":
        return None
    at = datetime.fromisoformat(value) if isinstance(value, str) else value
    return at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
