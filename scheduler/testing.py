"""Test kit: play hours or years of a real engine inside a test, without threads, sleeps or real time.

`pytest_plugins = ["scheduler.testing"]` in a top-level conftest gives the fixture `scheduler`.
"""

import warnings
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any
from unittest import mock

from django.db import router

from scheduler.activity.service import activity_tasks, drain
from scheduler.activity.store.base import ActivityStore
from scheduler.activity.store.chosen import chosen_store
from scheduler.arguments import checked_instant, checked_whole, optional_instant
from scheduler.clock import NEW_YEAR, SYSTEM_CLOCK
from scheduler.clock import ManualClock as ManualClock
from scheduler.context import RunContext
from scheduler.engine.base import Claimed, Engine
from scheduler.engine.claim import Claims
from scheduler.engine.control import get_job
from scheduler.engine.db.shared_time import CLOCK_QUERIES
from scheduler.engine.db.transactions import is_inside_a_transaction
from scheduler.engine.finish import Finished, Outcome, finish_runs
from scheduler.engine.instances import Process, join, leave
from scheduler.engine.mend.sweep import sweep
from scheduler.engine.plan_basis import policy_of
from scheduler.engine.rescue import close_as_lost
from scheduler.engine.sync.follow_code import sync
from scheduler.engine.tick import tick
from scheduler.engine.views.datetimes import said
from scheduler.exceptions import InvalidOption
from scheduler.executors.call import context_for
from scheduler.executors.inline import call_inline
from scheduler.models import Job, RunLog, Status, Trigger
from scheduler.registry import Registry, registry
from scheduler.runtime import publish

AT_ONCE = timedelta(0)
CAPACITY = 500
MOST_PASSES = 10_000
NO_PROCESS = Process(host="test", boot_id="", pid=0, process_started="")


class Interrupted(BaseException):
    """Ends a run at a checkpoint where a test kills it, as the death of its process does; but `finally` blocks run."""


class ManualScheduler:
    """A real engine whose tasks run in the calling thread, at the instants of a `ManualClock`.

    Tasks that take time say so by `scheduler.clock.advance(…)`; one that takes longer than its timeout is timed out.
    Works inside the transaction of a `TestCase`. `only` names the tasks to run, instead of all that are registered; the
    jobs of the others stay as they are, and a run of theirs that is due by hand or as a retry is a warning.
    """

    def __init__(
        self, now: datetime = NEW_YEAR, *, tasks: Registry = registry, only: Collection[str] | None = None
    ) -> None:
        self.clock = ManualClock(checked_instant("now", now))
        self._tasks, self._played = tasks, tasks if only is None else Registry()
        self._engine = Engine(registry=self._played, name="test")
        self._runs: list[RunLog] = []
        self._interrupt_at: tuple[int, str | None] | None = None
        if only is not None:
            self.only(*_names(only))

    def only(self, *names: str) -> "ManualScheduler":
        """Play these tasks, and those named before, and no others; raises UnknownTask with near names."""
        if self._played is self._tasks:
            self._played = Registry()
            self._engine = Engine(registry=self._played, name="test")
        for name in names:
            self._played.add(self._tasks.get(name))
        return self

    def interrupt_at(self, checkpoint: int, job: str | None = None) -> None:
        """Kill the next run that calls `context.save()` for the `checkpoint`-th time, right behind that; once.

        It is lost, as when its process dies, and its next attempt is due at once (`on_lost`). Only runs of `job`, if
        given. Raises InvalidOption for a number that is not at least 1.
        """
        self._interrupt_at = _checkpoint(checkpoint), job

    def run_due(self, now: datetime | None = None) -> list[RunLog]:
        """Run what is due at `now`, as a server would that looks at this instant; return the new rows of the ledger."""
        if now is not None:
            self.clock.set(checked_instant("now", now))
        with self._playing():
            self._run_all_due()
        return self._taken()

    def simulate(self, end: datetime, *, start: datetime | None = None) -> list[RunLog]:
        """Run everything until `end`, each run at its instant; return the new rows of the ledger, oldest slot first."""
        end = checked_instant("end", end)
        if start is not None:
            self.clock.set(checked_instant("start", start))
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
        if self._played is not self._tasks and not len(self._played):
            raise InvalidOption('No task is named to be played: write scheduler.only("name"), or the names of several.')
        left_out = frozenset(self._tasks.names()).difference(self._played.names())
        self._engine.not_played, self._engine.foreign_tasks = left_out, set(left_out)
        with self.controlled():
            join(self._engine, NO_PROCESS, self.clock.now(), started_by="test")
            try:
                sync(self._engine, self.clock.now())
                sweep(self._engine, self.clock.now())
                yield
                self._warn_of_runs_not_played()
            finally:
                leave(self._engine)

    def _warn_of_runs_not_played(self) -> None:
        """A run by hand, or a retry, of a task that is not named would wait for ever, and the test wonder why."""
        waiting = RunLog.objects.using(self._engine.using).waiting().filter(due_at__lte=self.clock.now())
        left_out = waiting.filter(job__task__in=self._engine.not_played).order_by("job__name")
        for name, task in left_out.values_list("job__name", "job__task").distinct():
            warnings.warn(f"A run of {name!r} is due and not played; add it to only({task!r}).", stacklevel=5)

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
        publish.claims(claims)
        for claimed in claims.runs:
            context = context_for(claimed)
            context._after_save = self._interrupting(claimed.job.name)
            with self.clock.timing(context, policy_of(claimed.job).timeout):
                outcome = call_inline(claimed, context, self.clock)
            self._finish(claimed, outcome)

    def _interrupting(self, name: str) -> Callable[[], None] | None:
        if self._interrupt_at is None or self._interrupt_at[1] not in (None, name):
            return None
        interrupt = _after(self._interrupt_at[0])

        def interrupt_once() -> None:
            if self._interrupt_at is not None:
                try:
                    interrupt()
                except Interrupted:
                    self._interrupt_at = None
                    raise

        return interrupt_once

    def _finish(self, claimed: Claimed, outcome: Outcome) -> None:
        if isinstance(outcome.exception, Interrupted):
            settled = close_as_lost(self._engine, [claimed.run], self.clock.now(), "its process died")
        else:
            settled = finish_runs(self._engine, [Finished(claimed.run, outcome)])
        self._runs += settled.finished + settled.skipped
        publish.settled(settled)

    def _taken(self) -> list[RunLog]:
        runs, self._runs = self._runs, []
        return sorted(runs, key=lambda run: (run.scheduled_for, run.pk))


def run_due(now: datetime, *, tasks: Registry = registry, only: Collection[str] | None = None) -> list[RunLog]:
    """Run what is due at `now`; return the new rows of the ledger. New jobs are planned from `now`, so run later."""
    return ManualScheduler(now, tasks=tasks, only=only).run_due()


def simulate(
    start: datetime, end: datetime, *, tasks: Registry = registry, only: Collection[str] | None = None
) -> list[RunLog]:
    """Return the rows of the ledger that a server running from `start` to `end` would have made, oldest slot first."""
    return ManualScheduler(checked_instant("start", start), tasks=tasks, only=only).simulate(end)


def run_context(job: str = "job", *, interrupt_at: int | None = None, **given: Any) -> RunContext:
    """Return a context for a task that a test calls itself: the first attempt of a slot at new year, by schedule.

    `given` are fields of `RunContext` that should differ, `state` or `attempt` for example. With `interrupt_at=n` the
    `n`-th `save()` raises Interrupted, behind which `saved_state` is what the next attempt begins with. Raises
    InvalidOption for a number that is not at least 1.
    """
    usual: dict[str, Any] = {
        "run_id": 1,
        "task": job,
        "scheduled_for": NEW_YEAR,
        "attempt": 1,
        "trigger": Trigger.SCHEDULE,
        "fencing_token": 1,
    }
    context = RunContext(job=job, **(usual | given))
    if interrupt_at is not None:
        context._after_save = _interrupting(context, _after(_checkpoint(interrupt_at)))
    return context


def _interrupting(context: RunContext, interrupt: Callable[[], None]) -> Callable[[], None]:
    """Return what interrupts a call of a test; what it has saved in a transaction that rolls back then is not kept."""
    kept = context._saved

    def interrupt_here() -> None:
        nonlocal kept
        try:
            interrupt()
        except Interrupted:
            if is_inside_a_transaction(router.db_for_write(Job)):
                context._saved = kept
            raise
        kept = context._saved

    return interrupt_here


def _after(checkpoint: int) -> Callable[[], None]:
    """Return what raises Interrupted when it is called for the `checkpoint`-th time."""
    left = checkpoint

    def interrupt() -> None:
        nonlocal left
        left -= 1
        if left == 0:
            raise Interrupted

    return interrupt


def _checkpoint(number: int) -> int:
    if checked_whole("the checkpoint", number) < 1:
        raise InvalidOption(f"the checkpoint is {number}; the first one is 1.")
    return number


def assert_ran(job: str, *, times: int | None = None, at: datetime | None = None, status: str = "succeeded") -> None:
    """Fail unless the job has runs of this status: at least one, or exactly `times`; for the slot `at`, if given.

    Raises UnknownJob, with near names, for a name that no job or task has.
    """
    _refuse_unknown(job)
    at = optional_instant("at", at)
    rows = RunLog.objects.filter(job__name=job)
    if at is not None:
        rows = rows.filter(scheduled_for=at)
    found = rows.filter(status=Status(status)).count()
    if found != times if times is not None else not found:
        wanted = "at least one" if times is None else str(times)
        slot = "" if at is None else f" for {said(at)}"
        ledger = "".join(f"\n  {_line(job, row)}" for row in rows[:20]) or " nothing"
        hint = _unless_played(job)
        raise AssertionError(f"{job!r} has {found} {status} runs{slot}, not {wanted}. The ledger has:{ledger}{hint}")


def assert_next_run(job: str, at: datetime | None) -> None:
    """Fail unless the next slot of the job is `at` (None: it has no next slot)."""
    row, at = get_job(job), optional_instant("at", at)
    if row.stale:
        raise AssertionError(f"{job!r} is not planned yet: call run_due(now) first.{_unless_played(job)}")
    if row.next_run_at != at:
        raise AssertionError(f"The next slot of {job!r} is {row.next_run_at}, not {at}; the job is {row.job_state}.")


def _line(job: str, row: RunLog) -> str:
    """A row of the ledger, for a person."""
    return f"{job} {said(row.scheduled_for)} attempt {row.attempt} {row.status}"


def _names(only: Collection[str]) -> Collection[str]:
    if isinstance(only, str):
        raise InvalidOption(f"only is {only!r}; it must be a list of names: write [{only!r}].")
    return only


def _unless_played(job: str) -> str:
    """What else to write where nothing has planned a job: only the tasks that are named are played."""
    is_planned = Job.objects.filter(name=job).filter(stale=False).exists()
    return "" if is_planned else f" Unless it is named it is not played; add it to only({job!r})."


def _refuse_unknown(job: str) -> None:
    """Raise UnknownJob with near names where neither the ledger nor the code has the job."""
    if job not in registry and not Job.objects.filter(name=job).exists():
        get_job(job)


try:
    import pytest
except ImportError:
    pass
else:

    @pytest.fixture(name="scheduler")
    def scheduler_fixture(db: None) -> Iterator[ManualScheduler]:
        """A `ManualScheduler` of the tasks that the test names by `only(…)`; the public API goes by its clock.

        The others may send mails, or ask services that are not there.
        """
        manual = ManualScheduler(only=())
        with manual.controlled():
            yield manual
