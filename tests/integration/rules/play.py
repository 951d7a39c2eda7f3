"""Plays: what happens to a job, move by move, on a real engine and a clock that stands still between the moves."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from scheduler import signals
from scheduler.clock import ManualClock
from scheduler.engine.base import Claimed, Engine
from scheduler.engine.finish import Finished, Settled, finish_runs
from scheduler.engine.rescue import close_as_lost
from scheduler.executors.call import context_for
from scheduler.executors.inline import call_inline
from scheduler.models import Job, RunLog
from scheduler.registry import Registry, register
from scheduler.runtime import publish
from scheduler.schedules import Every, Schedule
from tests.factories import T0, at, ended, make_engine, make_job, tick_at

COUNTERS = ("successes", "failures", "timeouts", "losses", "cancellations", "skips", "misses")
NOTICES = ("job_broken", "job_recovered", "job_paused", "job_resumed", "run_skipped", "run_missed", "run_lost")


class Play:
    """One job (and perhaps others) of one task, an engine, and the runs that are going on."""

    def __init__(self, tasks: Registry, clock: ManualClock, task: Callable[..., Any] = lambda: None, **options: Any):
        tasks.remove("task")
        register("task", into=tasks, **options)(task)
        self.clock = clock
        self.engine: Engine = make_engine(tasks=tasks)
        self.open: list[Claimed] = []
        self.heard: Counter[str] = Counter()
        self._receivers = [(getattr(signals, name), self._counting(name)) for name in NOTICES]
        for signal, receiver in self._receivers:
            signal.connect(receiver)

    def close(self) -> None:
        for signal, receiver in self._receivers:
            signal.disconnect(receiver)

    def _counting(self, name: str) -> Callable[..., None]:
        return lambda **_: self.heard.update([name])

    def to(self, seconds: float) -> datetime:
        """Let it be so many seconds after T0."""
        self.clock.set(at(seconds))
        return at(seconds)

    def tick(self, seconds: float, *, capacity: int = 100, engine: Engine | None = None) -> list[Claimed]:
        """Pass after pass until nothing more is due; returns what started."""
        now, started = self.to(seconds), []
        while True:
            passed = tick_at(engine or self.engine, now, capacity=capacity - len(started))
            started += passed.claims.runs
            publish.claims(passed.claims)
            if not passed.again:
                break
        self.open += started
        return started

    def end(self, seconds: float, status: str = "succeeded", *, job: str = "", **outcome: Any) -> Settled:
        """The run that has been going on longest ends (of `job`, if named)."""
        now = self.to(seconds)
        claimed = next(one for one in self.open if one.job.name == job or not job)
        self.open.remove(claimed)
        started = claimed.start_at
        return self._settle([ended(claimed, started, status, after=(now - started).total_seconds(), **outcome)])

    def lose(self, seconds: float, *, blameless: bool = False) -> None:
        """The process of the longest run dies (or, `blameless`, is stopped)."""
        run = RunLog.objects.get(pk=self.open.pop(0).run.pk)
        publish.settled(close_as_lost(self.engine, [run], self.to(seconds), "its process died", blameless=blameless))

    def call(self, seconds: float) -> None:
        """Claim what is due and really call it, in this thread."""
        self.tick(seconds)
        while self.open:
            claimed = self.open.pop(0)
            self._settle([Finished(claimed.run, call_inline(claimed, context_for(claimed), self.clock))])

    def _settle(self, ends: list[Finished]) -> Settled:
        settled = finish_runs(self.engine, ends)
        publish.settled(settled)
        return settled


Move = Callable[[Play], Any]


def tick(*seconds: float, **more: Any) -> Move:
    """Look at the database at these instants."""
    return lambda play: [play.tick(second, **more) for second in seconds]


def end(seconds: float, status: str = "succeeded", **outcome: Any) -> Move:
    """The longest run ends."""
    return lambda play: play.end(seconds, status, **outcome)


def run(seconds: float, status: str = "succeeded", **outcome: Any) -> Move:
    """Whatever is due starts and ends at once, run by run."""

    def move(play: Play) -> None:
        started = play.tick(seconds)
        assert started, f"nothing was due at {seconds}"
        for _ in started:
            play.end(seconds, status, **outcome)

    return move


def lose(seconds: float, **more: Any) -> Move:
    """The process of the longest run is gone."""
    return lambda play: play.lose(seconds, **more)


def call(seconds: float) -> Move:
    """What is due is really called."""
    return lambda play: play.call(seconds)


def do(seconds: float, act: Callable[..., Any], *args: Any, **kwargs: Any) -> Move:
    """Somebody uses the public API."""

    def move(play: Play) -> None:
        play.to(seconds)
        act(*args, **kwargs)

    return move


@dataclass(frozen=True, kw_only=True)
class Rule:
    """A row of the table: a job, what happens, and what the ledger, the counters and the plan say afterwards.

    A ledger line is “slot status”, in seconds after T0: “60 failed”, “60#2 succeeded” for the second attempt,
    “300 skipped +3” when three more slots are counted on it. Counters that are not named are 0.
    """

    moves: Sequence[Move]
    ledger: Sequence[str]
    counters: dict[str, int] = field(default_factory=dict)
    next: float | None
    schedule: Schedule = field(default_factory=lambda: Every(seconds=60))
    options: dict[str, Any] = field(default_factory=dict)
    columns: dict[str, Any] = field(default_factory=dict)
    task: Callable[..., Any] = lambda: None
    gate: Callable[[], bool | str] | None = None
    state: str = "scheduled"
    heard: dict[str, int] = field(default_factory=dict)

    def play(self, play: Play) -> None:
        job = make_job(schedule=self.schedule, columns=self.columns or None, **self.options)
        for move in self.moves:
            move(play)
        job.refresh_from_db()
        assert lines(job) == list(self.ledger)
        assert {name: count for name in COUNTERS if (count := getattr(job, name))} == self.counters
        assert seconds_of(job.wake_at) == self.next
        assert job.job_state == self.state
        assert {name: play.heard[name] for name in self.heard} == self.heard
        assert job.active_runs == job.runs.living().count() == sum(one.job.pk == job.pk for one in play.open)


def seconds_of(instant: datetime | None) -> float | None:
    return None if instant is None else (instant - T0).total_seconds()


def lines(job: Job) -> list[str]:
    """Return the ledger of a job, oldest slot first."""
    return [_line(row) for row in job.runs.order_by("scheduled_for", "attempt")]


def _line(row: RunLog) -> str:
    attempt = f"#{row.attempt}" if row.attempt > 1 else ""
    counted = f" +{row.coalesced}" if row.coalesced else ""
    return f"{seconds_of(row.scheduled_for):g}{attempt} {row.status}{counted}"
