"""Runs for users end to end, with threads, on a SQLite file."""

import asyncio
import threading
from contextlib import contextmanager
from datetime import timedelta

import pytest

from scheduler import schedule_user_task, update_job
from scheduler.clock import SYSTEM_CLOCK
from scheduler.models import Activity, EntryState, Instance, RunLog, Status
from scheduler.registry import register, registry
from scheduler.runtime.runner import Runner
from scheduler.schedules import Manual, OnActivity, Once

pytestmark = pytest.mark.usefixtures("file_database")
PATIENCE = 20.0
SOON = OnActivity(0.2, timeout=10)


@pytest.fixture(autouse=True)
def often(settings):
    settings.SCHEDULER_CHECK_INTERVAL = 0.1


@contextmanager
def running(function, *, stop_after=PATIENCE):
    register("visit", schedule=SOON)(function)
    runner = Runner("test")
    try:
        runner.start()
        until(lambda: Instance.objects.exists())
        yield runner
    finally:
        runner.stop(stop_after)
        registry.remove("visit")


def until(condition):
    end, pause = SYSTEM_CLOCK.monotonic() + PATIENCE, threading.Event()
    while not condition():
        assert SYSTEM_CLOCK.monotonic() < end, list(RunLog.objects.values_list("status", "reason", "error"))
        pause.wait(0.02)


def succeeded():
    return RunLog.objects.filter(job__name="visit", status=Status.SUCCEEDED)


def plain(user_id, device_id, agent_id):
    return user_id


async def asynchronous(user_id, device_id, agent_id):
    await asyncio.sleep(0)
    return user_id


@pytest.mark.parametrize("function", [plain, asynchronous])
def test_each_user_has_its_run(function):
    with running(function):
        for user in (1, 2, 3):
            schedule_user_task("visit", user)
        until(lambda: succeeded().count() == 3)
        until(lambda: not Activity.objects.exclude(state=EntryState.DONE).exists())

    assert sorted(succeeded().values_list("result", flat=True)) == ["1", "2", "3"]


def test_what_happens_while_a_run_goes_on_has_the_next_one():
    began, goes_on = threading.Event(), threading.Event()

    def visit(user_id, device_id, agent_id):
        began.set()
        assert goes_on.wait(PATIENCE)

    with running(visit):
        schedule_user_task("visit", 7)
        assert began.wait(PATIENCE)
        assert schedule_user_task("visit", 7)
        goes_on.set()
        until(lambda: succeeded().count() == 2)


@pytest.mark.parametrize("workers", [2, 4])
def test_users_leave_a_worker_to_the_plan_however_many_wait_I15(settings, workers):
    settings.SCHEDULER_MAX_WORKERS = workers
    planned, lock, now, most = threading.Event(), threading.Lock(), [], []

    def visit(user_id, device_id, agent_id):
        with lock:
            now.append(user_id)
            most.append(len(now))
        assert planned.wait(PATIENCE)
        with lock:
            now.remove(user_id)

    register("plan", schedule=Manual())(planned.set)
    try:
        with running(visit):
            for user in range(5):
                schedule_user_task("visit", user)
            until(lambda: len(now) == workers - 1)
            update_job("plan", schedule=Once(SYSTEM_CLOCK.now() + timedelta(seconds=0.2)))
            until(lambda: succeeded().count() == 5)
    finally:
        registry.remove("plan")

    assert max(most) == workers - 1


def test_a_stop_while_a_run_goes_on_loses_no_user():
    """I18, I20: the run is lost blamelessly, and has a further attempt in the next process."""
    began = threading.Event()

    async def visit(user_id, device_id, agent_id):
        if not began.is_set():
            began.set()
            await asyncio.sleep(PATIENCE)

    with running(visit, stop_after=0.5):
        schedule_user_task("visit", 7)
        assert began.wait(PATIENCE)
    assert RunLog.objects.filter(status=Status.PENDING, attempt=2).exists()

    with running(visit):
        until(lambda: succeeded().exists())
        until(lambda: Activity.objects.get().state == EntryState.DONE)
    assert Activity.objects.get().failures == 0


def test_a_project_without_such_tasks_has_no_thread_for_them():
    runner = Runner("test")

    assert runner.draining is None
