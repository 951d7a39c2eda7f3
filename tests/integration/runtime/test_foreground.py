"""run_task: one run in the foreground, with its threads, on a SQLite file; all that guards a run guards this one."""

import asyncio
import logging
import signal
import threading
from datetime import timedelta

import pytest
from django.db import OperationalError, connections, transaction

from scheduler.clock import SYSTEM_CLOCK
from scheduler.context import current_run
from scheduler.engine.control import cancel_run
from scheduler.exceptions import Refused
from scheduler.executors import log_capture
from scheduler.executors.call import stopped
from scheduler.models import Instance, Job, RunLog, Status
from scheduler.registry import register, registry
from scheduler.runtime import monitor, one_run, recorder, watchdog
from scheduler.runtime.foreground import run_in_foreground
from scheduler.runtime.interrupt import StopRequest
from scheduler.runtime.one_run import is_private
from scheduler.runtime.registration import Member
from tests.integration.conftest import FILE_ALIAS
from tests.integration.rules.process import PATIENCE, until

pytestmark = pytest.mark.usefixtures("file_database", "only_ours")


@pytest.fixture
def only_ours():
    """Tasks of a test are forgotten after it, and no log is kept any longer."""
    before = set(registry.names())
    yield
    for name in set(registry.names()) - before:
        registry.remove(name)
    log_capture.uninstall()


@pytest.fixture
def at_each_look(monkeypatch):
    """The monitor stores and asks at each look, not every two seconds."""
    monkeypatch.setattr(monitor, "FLUSH_EVERY", 0.0)
    monkeypatch.setattr(monitor, "IDLE_LOOK", 0.01)
    monkeypatch.setattr(monitor, "LOOK_EVERY", 0.01)


def run(function, *, stop=None, log=lambda line: None, **options):
    """Run a function in the foreground; nothing is held afterwards."""
    register("task", **options)(function)
    row = run_in_foreground("task", actor="ann", stop=stop, log=log)
    assert not Instance.objects.exists()
    assert not RunLog.objects.living().exists()
    assert not Job.objects.active().exists()
    return row


def polite():
    me = current_run()
    until(lambda: me.stop_requested, "the wish to stop")
    me.check_stop()


async def patient():
    await asyncio.sleep(PATIENCE)


def test_a_run_by_hand_is_in_the_ledger_like_any_other():
    row = run(lambda: 42)
    assert (row.status, row.result, row.trigger, row.actor) == (Status.SUCCEEDED, "42", "manual", "ann")


def test_an_async_task_runs_too():
    async def task():
        await asyncio.sleep(0)
        return 42

    assert run(task).result == "42"


def test_it_leaves_no_connection_of_async_work_behind_I18(async_thread):
    connections.settings[FILE_ALIAS]["CONN_MAX_AGE"] = None
    assert run(Job.objects.acount).result == "1"
    assert async_thread(lambda: connections[FILE_ALIAS].connection) is None


def test_the_executor_of_the_task_is_heeded(monkeypatch):
    def in_a_process(claimed, context, clock, *, timeout):
        context.log.append("from the child")
        return stopped(context, clock.now(), clock)

    monkeypatch.setattr("scheduler.executors.process.parent.run_in_process", in_a_process)
    lines = []
    assert run(lambda: 42, executor="process", log=lines.append).status == Status.CANCELLED
    assert lines == ["from the child"]


@pytest.mark.parametrize("task", [polite, patient])
def test_its_timeout_is_kept_F3(task, at_each_look):
    row = run(task, timeout=0.05)
    assert row.status == Status.TIMED_OUT


def test_who_cancels_it_elsewhere_is_heard(at_each_look):
    def task():
        cancel_run(current_run().run_id, actor="bob")
        polite()

    row = run(task)
    assert (row.status, row.note) == (Status.CANCELLED, "cancelled by bob")


def test_log_and_progress_are_stored_and_told_while_it_runs(at_each_look):
    lines = []

    def task():
        logging.getLogger("shop").warning("first step")
        current_run().progress(1, 2)
        until(lambda: RunLog.objects.filter(progress__isnull=False, log__contains="first step").exists())
        until(lambda: lines)

    assert run(task, log=lines.append).status == Status.SUCCEEDED
    assert [line.rpartition("shop: ")[2] for line in lines] == ["first step"]


def test_a_terminal_that_is_gone_breaks_no_run():
    def broken_pipe(line):
        raise BrokenPipeError

    assert run(lambda: logging.getLogger("shop").warning("x"), log=broken_pipe).status == Status.SUCCEEDED


def test_it_is_flagged_when_it_is_stuck_G2(at_each_look):
    def task():
        until(lambda: RunLog.objects.filter(stuck_at__isnull=False).exists(), "the flag")

    assert run(task, stuck_after=0.05).stuck_at is not None


def test_a_lease_that_others_took_away_stops_it_I5_I7(settings):
    settings.SCHEDULER_HEARTBEAT_SECONDS = 0.1
    reasons = []

    def task():
        Instance.objects.all().delete()
        polite_until_told(reasons)

    run(task)
    assert reasons == ["lease"]


def polite_until_told(reasons):
    me = current_run()
    until(lambda: me.stop_requested, "the wish to stop")
    reasons.append(me.stop_reason)


def test_an_end_that_the_database_does_not_take_at_once_is_written_later_I7(monkeypatch):
    real, failed = recorder.finish_runs, []

    def away(*args, **kwargs):
        if not failed:
            failed.append(True)
            raise OperationalError("database is locked")
        return real(*args, **kwargs)

    monkeypatch.setattr(recorder, "finish_runs", away)
    assert run(lambda: 42).result == "42"
    assert failed


def test_a_thread_of_ours_that_died_is_started_again_I7(monkeypatch):
    monkeypatch.setattr(watchdog, "LOOK_EVERY", 0.05)
    monkeypatch.setattr(threading, "excepthook", lambda args: None)
    real, died = recorder.finish_runs, []

    def exits_once(*args, **kwargs):
        if not died:
            died.append(True)
            raise SystemExit
        return real(*args, **kwargs)

    monkeypatch.setattr(recorder, "finish_runs", exits_once)
    assert run(lambda: 42).result == "42"
    assert died


def test_a_limited_group_needs_no_scheduler_that_ever_started_I15(settings):
    settings.SCHEDULER_GROUPS = {"serial": 1}
    assert run(lambda: 42, group="serial").status == Status.SUCCEEDED

    def busy():
        register("other", group="serial")(lambda: None)
        with pytest.raises(Refused, match=r"its group 'serial' has as many runs as it may.*--enqueue"):
            run_in_foreground("other")

    registry.remove("task")
    assert run(busy, group="serial").status == Status.SUCCEEDED


def test_a_promise_by_a_clock_that_is_ahead_of_the_databases_is_claimed(monkeypatch):
    real = SYSTEM_CLOCK.now
    monkeypatch.setattr("scheduler.runtime.database_clock.DatabaseClock.now", lambda self: real() - timedelta(days=1))
    assert run(lambda: 42).result == "42"


def test_inside_a_transaction_it_runs_inside_it_and_says_so():
    lines = []
    register("task")(lambda: threading.get_ident())
    with transaction.atomic(using="file"):
        run = run_in_foreground("task", log=lines.append)
        assert (run.status, run.result) == (Status.SUCCEEDED, str(threading.get_ident()))
        assert "inside the transaction" in lines[0]
        transaction.set_rollback(True, using="file")
    assert not RunLog.objects.exists()


def test_on_a_database_that_each_thread_has_for_itself_it_runs_in_this_one(monkeypatch):
    """It would wait for ever: its threads find no table there."""
    register("task")(lambda: threading.get_ident())
    monkeypatch.setattr("scheduler.runtime.one_run.is_private", lambda connection: True)
    assert run_in_foreground("task").result == str(threading.get_ident())


@pytest.mark.parametrize("name", [":memory:", "file:memorydb_default?mode=memory&cache=shared"])
def test_a_database_in_memory_is_one_of_these(name, monkeypatch):
    assert not is_private(connections["file"])
    monkeypatch.setitem(connections["file"].settings_dict, "NAME", name)
    assert is_private(connections["file"])


def test_a_failure_inside_a_transaction_is_a_failure():
    register("task")(lambda: 1 / 0)
    with transaction.atomic(using="file"):
        run = run_in_foreground("task")
    assert (run.status, "ZeroDivisionError" in run.error) == (Status.FAILED, True)
    assert not Instance.objects.exists()


class TestStop:
    """Ctrl-C and SIGTERM: as a stop of the scheduler, for this one run."""

    @pytest.mark.parametrize("task", [polite, patient])
    def test_a_run_that_agrees_is_cancelled_I18(self, task):
        stop, begun = StopRequest(), threading.Event()

        def ask():
            assert begun.wait(PATIENCE)
            stop.note(signal.SIGINT)

        asking = threading.Thread(target=ask)
        asking.start()
        row = run(starting(task, begun), stop=stop)
        asking.join()
        assert (row.status, row.reason) == (Status.CANCELLED, "stopped when asked to: cancelled")

    def test_a_run_that_is_deaf_is_lost_with_its_process_and_not_run_again_I18(self, settings):
        settings.SCHEDULER_SHUTDOWN_SECONDS = 0.1
        stop, let_go, gone = StopRequest(), threading.Event(), threading.Event()

        def deaf():
            stop.note(signal.SIGTERM)
            let_go.wait(PATIENCE)
            gone.set()

        row = run(deaf, stop=stop)
        assert (row.status, row.reason) == (Status.LOST, "its process was ended by SIGTERM")
        assert not RunLog.objects.waiting().exists()
        let_go.set()
        assert gone.wait(PATIENCE)

    def test_a_stop_before_the_run_began_is_heeded_I18(self):
        stop = StopRequest()
        stop.note(signal.SIGINT)
        assert run(polite, stop=stop).status in (Status.CANCELLED, Status.LOST)

    def test_one_that_ends_well_all_the_same_has_succeeded(self):
        stop = StopRequest()

        def done():
            stop.note(signal.SIGINT)
            return 42

        assert run(done, stop=stop).status == Status.SUCCEEDED


def starting(task, begun):
    """Return the task, sync or async as it is, which says that it has begun."""
    if task is patient:

        async def begins():
            begun.set()
            await task()

        return begins

    def begins_at_once():
        begun.set()
        task()

    return begins_at_once


def test_a_claim_whose_answer_comes_after_the_lease_begins_nothing_and_waits_for_the_scheduler_I2(monkeypatch):
    monkeypatch.setattr(Member, "may_claim", lambda self: False)
    called = []
    with pytest.raises(Refused, match="answered too late") as refused:
        run(lambda: called.append(1))
    assert (refused.value.code, called) == ("busy", [])
    assert RunLog.objects.get().status == Status.PENDING
    assert not Instance.objects.exists()
    assert not Job.objects.active().exists()


@pytest.mark.parametrize("inline", [False, True])
def test_it_refuses_where_django_commits_nothing_by_itself(monkeypatch, inline):
    """As the scheduler does, and for the same reason."""
    monkeypatch.setitem(connections[FILE_ALIAS].settings_dict, "AUTOCOMMIT", False)
    monkeypatch.setattr(one_run, "is_private", lambda connection: inline)
    register("task")(lambda: None)
    with pytest.raises(Refused, match="AUTOCOMMIT False"):
        run_in_foreground("task")
    assert not Instance.objects.exists()
