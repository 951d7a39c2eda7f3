"""The lock end to end, with threads, on a SQLite file and a Redis: whatever carries out a run, it asks first."""

import asyncio
import sys
import threading
from contextlib import contextmanager
from datetime import timedelta

import pytest

from scheduler.clock import SYSTEM_CLOCK
from scheduler.context import current_run
from scheduler.engine.plan_basis import EPOCH
from scheduler.exceptions import ConfigurationError
from scheduler.models import Instance, Job, RunLog, Status
from scheduler.registry import Registry, register
from scheduler.runtime.runner import Runner
from scheduler.schedules import Every, Once
from tests.factories import at

pytestmark = pytest.mark.usefixtures("file_database")
PATIENCE = 20.0


@pytest.fixture
def tasks(redis_server, settings):
    settings.SCHEDULER_LOCK_URL = redis_server.url
    settings.SCHEDULER_HEARTBEAT_SECONDS = 0.2
    settings.SCHEDULER_INSTANCE_TTL_SECONDS = 3.0
    return Registry()


@contextmanager
def running(tasks):
    runner = Runner("test", tasks=tasks)
    runner.start()
    try:
        yield runner
    finally:
        runner.stop(PATIENCE)


def until(condition):
    end, pause = SYSTEM_CLOCK.monotonic() + PATIENCE, threading.Event()
    while not condition():
        assert SYSTEM_CLOCK.monotonic() < end, list(RunLog.objects.values_list("status", "reason", "error"))
        pause.wait(0.02)


def soon():
    return Once(SYSTEM_CLOCK.now() + timedelta(seconds=0.4))


def key(schedule):
    return f"scheduler:lock:{{job}}:{schedule.at.isoformat()}"


def plain():
    return current_run().lock_fence


async def asynchronous():
    await asyncio.sleep(0)
    return current_run().lock_fence


@pytest.mark.parametrize("function", [plain, asynchronous])
def test_a_run_gets_its_slot_and_a_clean_stop_leaves_it_taken_for_others(function, tasks, redis_server):
    schedule = soon()
    register("job", schedule=schedule, into=tasks)(function)
    with running(tasks) as runner:
        until(lambda: RunLog.objects.filter(status=Status.SUCCEEDED).exists())
        assert "locks" in {service.name for service in runner.services}
    assert RunLog.objects.get().result == "1"
    assert redis_server.client.hget(key(schedule), "host") == runner.engine.name
    assert redis_server.client.ttl(key(schedule)) > 86_400
    assert not any(thread.name == "scheduler-locks" for thread in threading.enumerate())


@pytest.mark.parametrize(("function", "executor"), [(plain, "thread"), (asynchronous, "thread"), (plain, "process")])
def test_a_slot_of_another_host_is_not_carried_out_by_any_executor(function, executor, tasks, redis_server):
    schedule = soon()
    register("job", schedule=schedule, executor=executor, into=tasks)(function)
    redis_server.client.hset(key(schedule), mapping={"owner": "other/1", "host": "web-2:7"})
    with running(tasks):
        until(lambda: RunLog.objects.filter(status=Status.SKIPPED).exists())
    assert RunLog.objects.get().reason == "lock: web-2:7 runs it"


def test_an_interval_that_began_before_there_was_a_lock_moves_to_the_grid_of_all_hosts(tasks):
    register("job", schedule=Every(hours=1), into=tasks)(plain)
    Job.objects.create(name="job", task="job", schedule=Every(hours=1), anchor_at=at(421), source=__name__)
    with running(tasks):
        until(lambda: Job.objects.filter(anchor_at=EPOCH, next_run_at__gt=EPOCH).exists())
    assert Job.objects.get().next_run_at.minute == 0


def waits_in_a_thread(attempts):
    def task():
        attempts.append(current_run().lock_fence)
        while len(attempts) == 1:
            current_run().check_stop()
            threading.Event().wait(0.02)

    return task


def waits_on_the_loop(attempts):
    async def task():
        attempts.append(current_run().lock_fence)
        if len(attempts) == 1:
            await asyncio.sleep(PATIENCE)

    return task


@pytest.mark.parametrize("make", [waits_in_a_thread, waits_on_the_loop])
def test_a_run_whose_key_was_deleted_stops_and_its_slot_is_run_again_T1(make, tasks, redis_server, caplog):
    schedule, attempts = soon(), []
    register("job", schedule=schedule, into=tasks)(make(attempts))
    with running(tasks):
        until(lambda: attempts)
        redis_server.client.delete(key(schedule))
        until(lambda: RunLog.objects.filter(status=Status.SUCCEEDED).exists())
    first, second = RunLog.objects.order_by("attempt")
    assert (first.status, first.reason) == (Status.LOST, "its lease was lost")
    assert first.note == "lost its lock (fence 1) while it ran"
    assert (second.status, attempts) == (Status.SUCCEEDED, [1, 2])
    assert [record.levelname for record in caplog.records if getattr(record, "action", "") == "lock_lost"] == [
        "WARNING"
    ]


def test_a_redis_that_hangs_holds_up_neither_the_heartbeat_nor_runs_by_hand_T2(tasks, redis_server, settings):
    settings.SCHEDULER_LOCK_URL = f"{redis_server.url}?socket_timeout=0.3"
    schedule = soon()
    register("job", schedule=schedule, into=tasks)(plain)
    register("by hand", into=tasks)(lambda: "done")
    redis_server.freeze()
    try:
        with running(tasks) as runner:
            until(lambda: RunLog.objects.filter(status=Status.POSTPONED).exists())
            RunLog.objects.create(
                job=Job.objects.get(name="by hand"), scheduled_for=at(0), trigger="manual", due_at=at(0)
            )
            runner.dispatching.wake()
            until(lambda: RunLog.objects.filter(result="done").exists())
            beat = Instance.objects.get().heartbeat_at
            until(lambda: Instance.objects.get().heartbeat_at > beat)
            redis_server.thaw()
            until(lambda: RunLog.objects.filter(job__name="job", status=Status.SUCCEEDED).exists())
    finally:
        redis_server.thaw()
    rows = RunLog.objects.filter(job__name="job").order_by("attempt")
    assert [run.status for run in rows] == [Status.POSTPONED] * (len(rows) - 1) + [Status.SUCCEEDED]


def test_a_lock_that_fails_in_an_unheard_of_way_runs_nothing_and_the_worker_goes_on(tasks, monkeypatch):
    register("job", schedule=soon(), into=tasks)(plain)
    register("other", schedule=soon(), into=tasks)(plain)
    runner = Runner("test", tasks=tasks)
    real = runner.pool._refusal

    def refusal(living):
        if living.context.job == "job":
            raise SystemExit(1)
        return real(living)

    monkeypatch.setattr(runner.pool, "_refusal", refusal)
    monkeypatch.setattr(runner.pool, "_workers", 1)
    runner.start()
    until(lambda: RunLog.objects.filter(finished_at__isnull=False).count() == 2)
    runner.stop(PATIENCE)
    assert dict(RunLog.objects.values_list("job__name", "status")) == {"job": Status.FAILED, "other": Status.SUCCEEDED}


def test_without_redis_py_the_scheduler_does_not_start_and_says_why(tasks, monkeypatch):
    monkeypatch.setitem(sys.modules, "scheduler.slot_locks.redis", None)
    with pytest.raises(ConfigurationError, match=r"SCHEDULER_LOCK_URL needs redis-py.*\[redis\]"):
        Runner("test", tasks=tasks)
