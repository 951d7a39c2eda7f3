"""What Django Tasks asks of a backend, on each library that is installed."""

import asyncio
import pickle
import subprocess
import sys
from contextvars import copy_context
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from uuid import uuid4

import pytest
from asgiref.sync import async_to_sync
from django.core.checks import run_checks
from django.db import connection
from django.test.utils import CaptureQueriesContext

from scheduler.clock import SYSTEM_CLOCK
from scheduler.contrib.tasks import SchedulerBackend, telling
from scheduler.contrib.tasks.telling import teller_of
from scheduler.models import Job, RunLog
from tests.integration.enqueued.conftest import BACKEND, TASKS

pytestmark = pytest.mark.django_db


def test_a_result_that_is_ready_equals_the_one_that_is_found_by_its_id_1(calls):
    result = calls.add.using(priority=7, queue_name="mail").enqueue(1, x=2)
    assert (result.status, result.attempts, result.errors) == ("READY", 0, [])
    assert 0 < len(result.id) < 64
    assert result.enqueued_at is not None
    assert (result.started_at, result.last_attempted_at, result.finished_at) == (None, None, None)
    assert calls.add.get_result(result.id) == result
    with pytest.raises(ValueError, match="not finished"):
        result.return_value  # noqa: B018


def test_arguments_are_those_that_a_database_gives_back_2(calls):
    result = calls.echo.enqueue((1, 2), range(2), calls.Colour.RED, b"text", by={1: "one"})
    assert (result.args, result.kwargs) == ([[1, 2], [0, 1], "red", "text"], {"by": {"1": "one"}})
    assert calls.echo.get_result(result.id) == result


@pytest.mark.parametrize(
    "value",
    [{1}, datetime(2026, 1, 1, tzinfo=UTC), uuid4(), Job(), Decimal(1), b"\xff"],
    ids=lambda one: type(one).__name__,
)
@pytest.mark.parametrize("is_async", [False, True])
def test_what_json_lacks_raises_before_anything_is_written_3(calls, signals_heard, value, is_async):
    enqueue = async_to_sync(calls.echo.aenqueue) if is_async else calls.echo.enqueue
    for given in ([value], {"deep": [value]}):
        with pytest.raises((TypeError, ValueError), match="Unsupported"):
            enqueue(given)
    assert (Job.objects.count(), RunLog.objects.count(), signals_heard) == (0, 0, [])


def deep(levels):
    value = 1
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize(
    "value", [float("nan"), float("inf"), "a\0b", "\ud800", {"\0": 1}, deep(30), deep(5000)], ids=range(7)
)
def test_what_some_database_refuses_is_refused_on_all_4(calls, value):
    with pytest.raises(ValueError, match="Unsupported"):
        calls.echo.enqueue(value)
    assert RunLog.objects.count() == 0
    assert calls.echo.enqueue(deep(29)).status == "READY"


@pytest.mark.parametrize("name", ["nameless", "renamed", "method"])
def test_what_no_other_process_could_import_is_refused_5(calls, library, name):
    task = calls.Holder.method if name == "method" else getattr(calls, name)
    with pytest.raises(library.invalid_task, match="No other process can import"):
        task.enqueue()
    assert Job.objects.count() == 0


def test_a_nested_function_and_one_of_main_are_refused_5(calls, library, monkeypatch):
    with pytest.raises(library.invalid_task):
        calls.task(_nested())
    monkeypatch.setattr(calls.add.func, "__module__", "__main__")
    with pytest.raises(library.invalid_task, match="__main__"):
        calls.add.enqueue()
    assert Job.objects.count() == 0


def _nested():
    def nested():
        return None

    return nested


def test_priorities_6(calls, library):
    for priority in (-100, 100):
        assert calls.add.using(priority=priority).enqueue().task.priority == priority
    for priority in (101, -101, 3.1, "1"):
        with pytest.raises(library.invalid_task):
            calls.add.using(priority=priority)
        wrong = calls.add.using(priority=1)
        object.__setattr__(wrong, "priority", priority)
        with pytest.raises(library.invalid_task):
            wrong.enqueue()


def test_run_after_7(calls, library, settings):
    naive = datetime(2030, 1, 1, 12)  # noqa: DTZ001 - naive on purpose
    with pytest.raises(library.invalid_task):
        calls.add.using(run_after=naive)
    with pytest.raises(library.invalid_task):
        calls.add.using(run_after="tomorrow")
    before = SYSTEM_CLOCK.now()
    calls.add.using(run_after=timedelta(hours=1)).enqueue()
    assert timedelta(0) <= RunLog.objects.get().due_at - before - timedelta(hours=1) < timedelta(minutes=1)
    settings.USE_TZ, settings.TIME_ZONE = False, "Europe/Berlin"
    result = calls.add.using(run_after=naive).enqueue()
    assert calls.add.get_result(result.id) == result
    assert result.task.run_after == naive
    assert RunLog.objects.latest("pk").due_at == datetime(2030, 1, 1, 11, tzinfo=UTC)


def test_queues_8(calls, library, settings):
    task = calls.add.using(queue_name="mail")
    settings.TASKS = {"default": {"BACKEND": BACKEND}, "other": {"BACKEND": BACKEND, "QUEUES": []}}
    for enqueue in (task.enqueue, async_to_sync(task.aenqueue)):
        with pytest.raises(library.invalid_task):
            enqueue()
    assert calls.add.using(queue_name="anything", backend="other").enqueue().status == "READY"
    with pytest.raises(library.invalid_task):
        calls.add.using(queue_name="x" * 95, backend="other")


@pytest.mark.parametrize("found", ["123", "", "1" * 300, "1-\0", None, 17, "1-99999999999999999999999", "٣-٣", "01-5"])
def test_no_id_of_a_result_9(calls, library, found):
    with pytest.raises(library.exceptions.TaskResultDoesNotExist):
        calls.add.get_result(found)
    with pytest.raises(library.exceptions.TaskResultDoesNotExist):
        async_to_sync(calls.add.aget_result)(found)


def test_the_id_of_another_backend_and_of_another_task_9_10(calls, library):
    result = calls.add.using(backend="other").enqueue(1)
    with pytest.raises(library.exceptions.TaskResultDoesNotExist):
        calls.add.get_result(result.id)
    with pytest.raises(library.exceptions.TaskResultMismatch):
        calls.echo.using(backend="other").get_result(result.id)
    assert result.task.get_backend().get_result(result.id).task.func is calls.add.func


def test_after_the_run_11(calls, run_due):
    result = calls.add.enqueue(40, x=2)
    run_due()
    result.refresh()
    assert (result.status, result.attempts, len(result.worker_ids), result.return_value) == ("SUCCESSFUL", 1, 1, 42)
    assert result.enqueued_at <= result.started_at == result.last_attempted_at <= result.finished_at
    assert len(result.worker_ids[0]) <= 64
    nothing = calls.note.enqueue("x")
    run_due()
    nothing.refresh()
    assert nothing.is_finished
    assert nothing.return_value is None


def test_a_coroutine_function(calls, run_due):
    result = calls.wait_for.enqueue("value")
    run_due()
    async_to_sync(result.arefresh)()
    assert result.return_value == "value"


@pytest.mark.parametrize(
    ("kind", "end"),
    [
        ("plain", "ValueError: no\n"),
        ("notes", "ValueError: first\nsecond line\na note\n"),
        ("group", "------------------------------------\n"),
        ("local", "Own: mine\n"),
    ],
)
def test_an_error_12(calls, run_due, kind, end):
    result = calls.fail.enqueue(kind)
    run_due()
    result.refresh()
    assert result.status == "FAILED"
    (error,) = result.errors
    assert error.traceback.endswith(end)
    assert error.traceback.startswith("Traceback") or kind == "group"
    if kind != "local":
        assert issubclass(error.exception_class, Exception)
    with pytest.raises(ValueError, match="failed"):
        result.return_value  # noqa: B018


@pytest.mark.parametrize(("kind", "name"), [("exit", "SystemExit"), ("interrupt", "KeyboardInterrupt")])
def test_a_task_that_wants_to_end_the_process_13(calls, run_due, kind, name):
    result = calls.leave.enqueue(kind)
    run_due()
    result.refresh()
    assert (result.status, result.errors[0].exception_class.__name__) == ("FAILED", name)


def test_a_value_that_json_lacks_14(calls, run_due):
    result = calls.give.enqueue("lambda")
    run_due()
    result.refresh()
    assert (result.status, result.errors[0].exception_class, result._return_value) == ("FAILED", TypeError, None)


def test_the_context_15(calls, run_due):
    result = calls.tell_context.using(backend="other").enqueue(fails=1)
    run_due()
    run_due()
    assert calls.heard == [(result.id, 1, "RUNNING"), (result.id, 2, "RUNNING")]


@pytest.mark.parametrize("is_async", [False, True])
def test_refresh_takes_one_query_16(calls, run_due, is_async):
    result = calls.add.enqueue(1)
    run_due()
    with CaptureQueriesContext(connection) as caught:
        async_to_sync(result.arefresh)() if is_async else result.refresh()
    assert len(caught) == 1
    assert result.return_value == 1


def test_signals_17(calls, library, run_due, signals_heard):
    seen = []
    receive = lambda sender, task_result, **_: seen.append(calls.add.get_result(task_result.id).return_value)  # noqa: E731
    library.signals.task_finished.connect(receive, weak=False)
    result = calls.add.enqueue(5)
    run_due()
    library.signals.task_finished.disconnect(receive)
    told = [(name, status, found) for name, sender, status, found in signals_heard if sender is SchedulerBackend]
    assert told == [
        ("task_enqueued", "READY", result.id),
        ("task_started", "RUNNING", result.id),
        ("task_finished", "SUCCESSFUL", result.id),
    ]
    assert seen == [5]


def test_a_receiver_that_raises_changes_nothing_18(calls, library, run_due):
    def refuse(sender, **_):
        raise RuntimeError("no")

    named = ("task_enqueued", "task_started", "task_finished")
    for name in named:
        getattr(library.signals, name).connect(refuse, weak=False)
    result = calls.add.enqueue(1)
    run_due()
    for name in named:
        getattr(library.signals, name).disconnect(refuse)
    result.refresh()
    assert result.return_value == 1


def test_results_pickle_where_the_library_lets_them_and_the_log_is_its_own_19(calls, library, run_due, caplog):
    caplog.set_level("DEBUG", library.name)
    result = calls.add.enqueue(1)
    if hasattr(library.base.Task, "_reconstruct"):
        assert pickle.loads(pickle.dumps(result)) == result
    run_due()
    assert [one.name for one in caplog.records if result.id in one.getMessage()] == [library.name] * 3


@pytest.mark.parametrize(
    ("params", "ids"),
    [
        ({}, []),
        ({"OPTIONS": {"max_attempts": 2, "backoff": "10s", "timeout": 5, "on_lost": "retry"}}, []),
        ({"OPTIONS": {"max_concurrent": 3, "store": 9}}, []),
        ({"OPTIONS": {"max_attempts": 0}}, ["E051"]),
        ({"OPTIONS": {"backoff": "soon"}}, ["E051"]),
        ({"OPTIONS": {"timeout": -1, "on_lost": "x"}}, ["E051", "E051"]),
        ({"OPTIONS": {"max_concurrent": 0, "store": "much"}}, ["E051", "E051"]),
        ({"OPTIONS": {"retries": 1}}, ["E052"]),
        ({"ENQUEUE_ON_COMMIT": True}, ["W051"]),
    ],
)  # fmt: skip
def test_checks_20(calls, settings, params, ids):
    settings.TASKS = {"default": {"BACKEND": BACKEND, **params}}
    backend = SchedulerBackend("default", settings.TASKS["default"])
    found = [one.id.removeprefix("scheduler.") for one in backend.check() if one.id != "scheduler.W050"]
    assert found == ids


def test_a_missing_app_is_an_error_20(calls, settings):
    settings.INSTALLED_APPS = [app for app in settings.INSTALLED_APPS if app != "scheduler"]
    assert [one.id for one in SchedulerBackend("default", {}).check()] == ["scheduler.E050"]


def test_the_checks_of_the_library_find_those_of_the_backend_20(calls, library, settings):
    settings.TASKS = {"default": {"BACKEND": BACKEND, "OPTIONS": {"wrong": 1}}}
    __import__(f"{library.name}.checks")
    assert "scheduler.E052" in {one.id for one in run_checks()}


def test_options_of_a_task_come_before_those_of_the_backend(calls, library):
    if library.base.Task is not SchedulerBackend.task_class.__mro__[1]:
        pytest.skip("the class of tasks is that of the other library")
    made = SchedulerBackend.task_class(func=calls.add.func, max_attempts=4, timeout="1m", backend="other")
    policy = made.get_backend().carrier(made).policy
    assert (policy.retries, policy.timeout, policy.breaker_threshold) == (3, timedelta(minutes=1), None)


def test_async_tasks_share_one_backend(calls):
    async def both():
        return await asyncio.gather(calls.add.aenqueue(1), calls.add.aenqueue(2))

    assert len({one.id for one in async_to_sync(both)()}) == 2


def test_a_task_may_be_made_before_the_apps_are_ready(library):
    script = f"""
from django.conf import settings
settings.configure(TASKS={{"default": {{"BACKEND": "scheduler.contrib.tasks.SchedulerBackend"}}}})
from {library.name} import task
@task
def early(): pass
print(type(early.get_backend()).__name__)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (done.stdout.strip(), done.stderr) == ("SchedulerBackend", "")


def test_calls_of_a_task_are_told_with_the_same_until_the_settings_change(calls, settings):
    calls.add.enqueue(1, x=2)
    calls.add.using(priority=7).enqueue(1, x=2)
    usual, first = RunLog.objects.order_by("pk")
    teller = copy_context().run(teller_of, usual)  # a run has a context of its own, in which Django makes a backend
    assert copy_context().run(teller_of, usual) is teller
    assert (teller.task, teller_of(first).task) == (calls.add, calls.add.using(priority=7))
    settings.TASKS = TASKS | {"default": TASKS["default"] | {"OPTIONS": {"store": 7}}}
    assert teller_of(usual).options == {"store": 7}


def test_what_calls_are_told_with_is_kept_for_so_many_queues_only(calls, monkeypatch):
    monkeypatch.setattr(telling, "MOST_KNOWN", 3)
    calls.add.enqueue(1, x=2)
    run = RunLog.objects.get()
    for number in range(10):
        run.kwargs = run.kwargs | {"priority": number}
        assert teller_of(run).task.priority == number
        assert len(telling._common) <= 3
