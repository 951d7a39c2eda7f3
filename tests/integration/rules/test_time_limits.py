"""Timeouts and stuck runs, seen by the monitor of a process with real worker threads."""

import asyncio
import threading

import pytest
from django.db import OperationalError

from scheduler import signals
from scheduler.context import current_run
from scheduler.engine import running
from scheduler.health import get_scheduler_status
from scheduler.models import Job, RunLog, Status
from scheduler.registry import register
from scheduler.runtime import current, monitor
from tests.factories import at, make_job
from tests.integration.rules.process import PATIENCE, until

pytestmark = pytest.mark.django_db


@pytest.fixture
def stuck():
    """Hears of stuck runs: their ids and stacks."""
    heard = []
    receiver = lambda run, stack, **_: heard.append((run.pk, stack))  # noqa: E731
    signals.run_stuck.connect(receiver)
    yield heard
    signals.run_stuck.disconnect(receiver)


def ledger_of(name="job"):
    return list(RunLog.objects.filter(job__name=name).order_by("pk").values_list("status", flat=True))


class TestTimeout:
    """F3: a thread cannot be killed, so its place is kept until its call has really ended."""

    def test_the_row_says_so_at_its_time_and_the_job_stays_busy_until_the_call_ends_F3_I2(self, start):
        process = start()
        task = process.hold()
        run = process.start_one(task, timeout=2)
        process.watch(at(61.9))
        assert ledger_of() == ["running"]
        process.watch(at(62))
        run.refresh_from_db()
        assert (run.status, run.finished_at) == (Status.TIMED_OUT, None)
        assert "its call still runs" in run.error
        process.dispatch(at(120))
        assert (task.calls, Job.objects.get(name="job").active_runs) == (1, 1)
        process.go_to(at(140))
        task.let_go.set()
        process.until_idle()
        run.refresh_from_db()
        assert (run.status, run.finished_at, run.result) == (Status.TIMED_OUT, at(140), "let go")
        assert ledger_of() == ["timed_out", "skipped"]
        process.dispatch(at(180))
        process.until_idle()
        assert (task.most_at_once, ledger_of()[-1]) == (1, "succeeded")

    def test_a_task_that_listens_ends_early_and_is_a_timeout_all_the_same(self, start):
        process = start()
        seen = threading.Event()

        def polite():
            run = current_run()
            until(lambda: run.stop_requested, "the wish to stop")
            seen.set()
            run.check_stop()

        make_job(timeout=2)
        process.engine.registry.remove("task")
        register("task", into=process.engine.registry)(polite)
        process.dispatch()
        process.dispatch(at(60))
        until(process.living)
        process.watch(at(62))
        assert seen.wait(PATIENCE)
        process.until_idle()
        run = RunLog.objects.get()
        assert (run.status, Job.objects.get(name="job").timeouts) == (Status.TIMED_OUT, 1)

    def test_an_async_task_is_cancelled_X1(self, start):
        process = start()
        felt = threading.Event()

        async def waits():
            try:
                await asyncio.sleep(1000)
            except asyncio.CancelledError:
                felt.set()
                raise

        process.engine.registry.remove("task")
        register("task", into=process.engine.registry)(waits)
        make_job(timeout=2)
        process.dispatch()
        process.dispatch(at(60))
        until(lambda: process.living() and process.runner.pool.living()[0].cancel, "the start")
        process.watch(at(62))
        assert felt.wait(PATIENCE)
        process.until_idle()
        assert ledger_of() == ["timed_out"]

    def test_a_database_that_is_away_at_that_moment_is_told_later_N1(self, start, monkeypatch):
        process = start()
        run = process.start_one(process.hold(), timeout=2)
        real = running.mark_timed_out

        def away(*args):
            monkeypatch.setattr(monitor.running, "mark_timed_out", real)
            raise OperationalError

        monkeypatch.setattr(monitor.running, "mark_timed_out", away)
        with pytest.raises(OperationalError):
            process.watch(at(62))
        process.watch(at(63))
        run.refresh_from_db()
        assert run.status == Status.TIMED_OUT

    def test_a_pool_full_of_zombies_claims_nothing_and_says_so_F3(self, start, monkeypatch):
        process = start(workers=2)
        task = process.hold()
        for name in ("one", "other", "waits"):
            make_job(name, timeout=2)
        process.dispatch()
        process.dispatch(at(60))
        until(lambda: task.calls == 2)
        process.watch(at(62))
        executor = process.runner.pool
        assert (executor.zombies(), executor.capacity()) == (2, 0)
        monkeypatch.setattr(current, "current", lambda: process.runner)
        status = get_scheduler_status()
        assert "every worker of this process is held by a run that is over its time" in map(str, status.problems)
        assert status.here["zombies"] == 2
        task.let_go.set()
        process.until_idle()
        assert executor.zombies() == 0
        until(lambda: executor.capacity() > 0)


class TestStuck:
    """G2: a heartbeat proves that the process lives, not that the task gets on."""

    def test_it_is_flagged_once_with_its_stack_and_keeps_its_place_G2(self, start, stuck):
        process = start()
        task = process.hold()
        run = process.start_one(task, stuck_after=3)
        process.watch(at(62.9))
        assert stuck == []
        for seconds in (63, 64, 70):
            process.watch(at(seconds))
        run.refresh_from_db()
        assert [pk for pk, _ in stuck] == [run.pk]
        assert "let_go.wait" in stuck[0][1]
        assert (run.status, run.stuck_at) == (Status.RUNNING, at(63))
        assert "let_go.wait" in run.error
        assert get_scheduler_status().jobs["stuck"] == 1
        process.dispatch(at(120))
        assert task.calls == 1

    def test_it_clears_when_the_run_ends_G2(self, start):
        process = start()
        task = process.hold()
        run = process.start_one(task, stuck_after=3)
        process.watch(at(63))
        task.let_go.set()
        process.until_idle()
        run.refresh_from_db()
        assert (run.status, run.error, get_scheduler_status().jobs["stuck"]) == (Status.SUCCEEDED, "", 0)

    def test_abandoned_it_is_lost_its_job_goes_on_and_a_late_end_is_only_noted_G2_I5(self, start):
        process = start()
        task = process.hold()
        run = process.start_one(task, stuck_after=3, on_stuck="abandon", on_lost="skip")
        process.watch(at(63))
        run.refresh_from_db()
        assert (run.status, run.reason) == (Status.LOST, "it was stuck and has been abandoned")
        assert process.runner.pool.zombies() == 1
        process.dispatch(at(120))
        until(lambda: task.calls == 2, "the next slot")
        task.let_go.set()
        process.until_idle()
        run.refresh_from_db()
        assert (run.status, run.result) == (Status.LOST, "")
        assert run.note.startswith("finished late")
        job = Job.objects.get(name="job")
        assert (job.losses, job.successes, job.active_runs) == (1, 1, 0)

    def test_abandoning_is_tried_again_after_a_fault_N1(self, start, monkeypatch):
        process = start()
        run = process.start_one(process.hold(), stuck_after=3, on_stuck="abandon", on_lost="skip")
        real = monitor.close_as_lost

        def away(*args, **kwargs):
            monkeypatch.setattr(monitor, "close_as_lost", real)
            raise OperationalError

        monkeypatch.setattr(monitor, "close_as_lost", away)
        with pytest.raises(OperationalError):
            process.watch(at(63))
        process.watch(at(64))
        run.refresh_from_db()
        assert run.status == Status.LOST

    def test_none_never_flags(self, start, stuck):
        process = start()
        process.start_one(process.hold(), stuck_after=None)
        process.watch(at(days=9))
        assert stuck == []
