"""Test kit: play hours or years of a real engine inside a test, without threads, sleeps or real time.

`pytest_plugins = ["scheduler.testing"]` in a top-level conftest gives the fixture `scheduler`.
"""

import threading
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any
from unittest import mock

from scheduler.activity.base import ActivityStore
from scheduler.activity.stores import chosen_store
from scheduler.clock import SYSTEM_CLOCK
from scheduler.context import RunContext
from scheduler.engine.activity import activity_tasks, drain
from scheduler.engine.base import Claimed, Engine
from scheduler.engine.claim import Claims
from scheduler.engine.dbtime import CLOCK_QUERIES
from scheduler.engine.finish import Finished, Outcome, finish_runs
from scheduler.engine.presence import Process, join, leave
from scheduler.engine.sync import sync
from scheduler.engine.tick import tick
from scheduler.exceptions import InvalidOption
from scheduler.executors.inline import InlineExecutor
from scheduler.models import UNPLANNED, Job, RunLog, Status, Trigger
from scheduler.registry import Registry, registry
from scheduler.runtime import announce

NEW_YEAR = datetime(2026, 1, 1, tzinfo=UTC)
AT_ONCE = timedelta(0)
CAPACITY = 500
MOST_PASSES = 10_000
NO_PROCESS = Process(host="test", boot_id="", pid=0, process_started="")


class ManualClock:
    """A clock that stands still until it is moved. Waiting moves it by the time waited for, and never sleeps."""

    def __init__(self, now: datetime = NEW_YEAR) -> None:
        self._now = now
        self._monotonic = 0.0

    def now(self) -> datetime:
        return self._now

    def monotonic(self) -> float:
        return self._monotonic

    def wait(self, condition: threading.Condition, seconds: float) -> bool:
        """Let other threads have `condition` for a moment, and be later by `seconds`; True when notified meanwhile."""
        notified = condition.wait(0)
        if not notified:
            self.advance(max(0.0, seconds))
        return notified

    def advance(self, by: timedelta | float) -> None:
        """Let time pass: a `timedelta`, or seconds."""
        passed = by if isinstance(by, timedelta) else timedelta(seconds=by)
        self._now += passed
        self._monotonic += passed.total_seconds()

    def move_to(self, now: datetime) -> None:
        """Let time pass until `now`; nothing happens when that is past."""
        self.advance(max(timedelta(0), now - self._now))

    def set(self, now: datetime) -> None:
        """Set the wall clock, forward or back, as a person or NTP does: no time passes."""
        self._now = now


class ManualScheduler:
    """A real engine whose tasks run in the calling thread, at the instants of a `ManualClock`.

    Tasks that take time say so by `scheduler.clock.advance(…)`. Works inside the transaction of a `TestCase`. `only`
    names the tasks to run, instead of all that are registered.
    """

    def __init__(self, now: datetime = NEW_YEAR, *, tasks: Registry = registry, only: Collection[str] = ()) -> None:
        self.clock = ManualClock(now)
        self._engine = Engine(registry=_selected(tasks, only) if only else tasks, name="test")
        self._executor = InlineExecutor(self._finish, self.clock)
        self._runs: list[RunLog] = []

    def run_due(self, now: datetime | None = None) -> list[RunLog]:
        """Run what is due at `now`, as a server would that looks at this instant; return the new rows of the ledger."""
        if now is not None:
            self.clock.set(now)
        with self._playing():
            self._run_all_due()
        return self._taken()

    def simulate(self, end: datetime, *, start: datetime | None = None) -> list[RunLog]:
        """Run everything until `end`, each run at its instant; return the new rows of the ledger, oldest slot first."""
        if start is not None:
            self.clock.set(start)
        with self._playing():
            while (at := self._run_all_due()) is not None and at <= end:
                self.clock.move_to(at)
        self.clock.move_to(end)
        return self._taken()

    @contextmanager
    def controlled(self) -> Iterator[None]:
        """Let `pause_job`, `run_now` and the rest of the public API go by this clock too."""
        with mock.patch.object(SYSTEM_CLOCK, "now", self.clock.now), mock.patch.dict(CLOCK_QUERIES, clear=True):
            yield

    @contextmanager
    def _playing(self) -> Iterator[None]:
        with self.controlled():
            join(self._engine, NO_PROCESS, self.clock.now(), started_by="test")
            try:
                sync(self._engine, self.clock.now())
                yield
            finally:
                leave(self._engine)

    def _run_all_due(self) -> datetime | None:
        """Run until nothing is due; return the instant of the next start."""
        store = chosen_store(self._engine.using)
        for _ in range(MOST_PASSES):
            promised = drain(self._engine, store, self.clock.now())
            passed = tick(self._engine, self.clock.now(), ahead=AT_ONCE, capacity=CAPACITY)
            self._take(passed.claims)
            if not (promised or passed.again or passed.claims.runs):
                return min(filter(None, (passed.wake_at, self._next_user_at(store))), default=None)
        raise AssertionError(f"There is no end of due runs at {self.clock.now()}: a task makes itself due again.")

    def _next_user_at(self, store: ActivityStore) -> datetime | None:
        """Return when the next user is due."""
        names = [task.name for task in activity_tasks(self._engine.registry)]
        if not names:
            return None
        earliest = store.next_due_at(list(Job.objects.using(self._engine.using).filter(name__in=names)))
        return earliest if earliest and earliest > self.clock.now() else None

    def _take(self, claims: Claims) -> None:
        self._runs += claims.not_run
        announce.claims(claims)
        for claimed in claims.runs:
            self._executor.submit(claimed)

    def _finish(self, claimed: Claimed, outcome: Outcome) -> None:
        settled = finish_runs(self._engine, [Finished(claimed.run, outcome)])
        self._runs += settled.finished + settled.skipped
        announce.settled(settled)

    def _taken(self) -> list[RunLog]:
        runs, self._runs = self._runs, []
        return sorted(runs, key=lambda run: (run.scheduled_for, run.pk))


def run_due(now: datetime, *, tasks: Registry = registry, only: Collection[str] = ()) -> list[RunLog]:
    """Run what is due at `now`; return the new rows of the ledger. New jobs are planned from `now`, so run later."""
    return ManualScheduler(now, tasks=tasks, only=only).run_due()


def simulate(start: datetime, end: datetime, *, tasks: Registry = registry, only: Collection[str] = ()) -> list[RunLog]:
    """Return the rows of the ledger that a server running from `start` to `end` would have made, oldest slot first."""
    return ManualScheduler(start, tasks=tasks, only=only).simulate(end)


def run_context(job: str = "job", **given: Any) -> RunContext:
    """Return a context for a task that a test calls itself: the first attempt of a slot at new year, by schedule.

    `given` are fields of `RunContext` that should differ, `state` or `attempt` for example.
    """
    usual: dict[str, Any] = {
        "run_id": 1,
        "task": job,
        "scheduled_for": NEW_YEAR,
        "attempt": 1,
        "trigger": Trigger.SCHEDULE,
        "fencing_token": 1,
    }
    return RunContext(job=job, **(usual | given))


def assert_ran(job: str, *, times: int | None = None, at: datetime | None = None, status: str = "succeeded") -> None:
    """Fail unless the job has runs of this status: at least one, or exactly `times`; for the slot `at`, if given."""
    rows = RunLog.objects.filter(job__name=job)
    if at is not None:
        rows = rows.filter(scheduled_for=at)
    found = rows.filter(status=Status(status)).count()
    if found != times if times is not None else not found:
        wanted = "at least one" if times is None else str(times)
        slot = "" if at is None else f" for {at}"
        ledger = "".join(f"\n  {row}" for row in rows[:20]) or " nothing"
        raise AssertionError(f"{job!r} has {found} {status} runs{slot}, not {wanted}. The ledger has:{ledger}")


def assert_next_run(job: str, at: datetime | None) -> None:
    """Fail unless the next slot of the job is `at` (None: it has no next slot)."""
    row = Job.objects.get(name=job)
    if row.next_start_at == UNPLANNED:
        raise AssertionError(f"{job!r} is not planned yet: call run_due(now) first.")
    if row.next_run_at != at:
        raise AssertionError(f"The next slot of {job!r} is {row.next_run_at}, not {at}; the job is {row.job_state}.")


def _selected(tasks: Registry, names: Collection[str]) -> Registry:
    if isinstance(names, str):
        raise InvalidOption(f"only is {names!r}; it must be a list of names: write [{names!r}].")
    chosen = Registry()
    for name in names:
        chosen.add(tasks.get(name))
    return chosen


try:
    import pytest
except ImportError:
    pass
else:

    @pytest.fixture(name="scheduler")
    def scheduler_fixture(db: None) -> Iterator[ManualScheduler]:
        """A `ManualScheduler` of all registered tasks; the public API goes by its clock."""
        manual = ManualScheduler()
        with manual.controlled():
            yield manual
