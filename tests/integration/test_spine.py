"""The spine end to end, with its threads, on a SQLite file: a job runs on time, and a stop leaves nothing behind."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from unittest import mock

import pytest
from django.db import connections, transaction

from scheduler.clock import SYSTEM_CLOCK
from scheduler.context import current_run
from scheduler.executors import worker_threads
from scheduler.models import Instance, Job, RunLog, Status
from scheduler.registry import Registry, register
from scheduler.runtime import parts, recorder, service, watchdog
from scheduler.runtime import runner as runner_module
from scheduler.runtime.runner import Runner
from scheduler.schedules import Every, Once
from scheduler.signals import run_finished
from tests.integration.conftest import FILE_ALIAS

pytestmark = pytest.mark.usefixtures("file_database")

PATIENCE = 20.0
PATIENTLY = mock.patch.multiple(worker_threads, LAST_STEPS=PATIENCE)
"""A stop gives idle threads a moment to end, too short a one on a busy machine: whether they end is the matter."""


@pytest.fixture
def tasks():
    return Registry()


@pytest.fixture
def ended():
    """Counts the runs that ended: `ended.wait(3)` returns when three have."""
    return EndedRuns()


class EndedRuns:
    def __init__(self):
        self.names = []
        self._changed = threading.Condition()
        run_finished.connect(self._hear)

    def _hear(self, job, **_):
        with self._changed:
            self.names.append(job.name)
            self._changed.notify_all()

    def wait(self, count):
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.names) >= count, PATIENCE), self.names


@contextmanager
def running(tasks, *, workers=4, settings=None, stop_within=PATIENCE) -> Iterator[Runner]:
    if settings is not None:
        settings.SCHEDULER_MAX_WORKERS = workers
    runner = Runner("test", tasks=tasks)
    runner.start()
    try:
        yield runner
    finally:
        with PATIENTLY:
            runner.stop(stop_within)
        assert nothing_is_held()
        assert not threads_but_those_of(runner.pool.living())


def nothing_is_held():
    """I18: no run is open, no job is busy, no instance is entered."""
    assert not RunLog.objects.filter(status=Status.RUNNING).exists()
    assert not Job.objects.active().exists()
    assert not Instance.objects.exists()
    return True


def threads_but_those_of(living):
    """Return our threads that no run holds. One that lives while the interpreter shuts down can abort the process."""
    held = {run.thread_id for run in living if run.holds_worker}
    return [
        thread.name for thread in threading.enumerate()
        if thread.name.startswith("scheduler-") and thread.ident not in held
    ]  # fmt: skip


def soon(seconds=0.4):
    return Once(SYSTEM_CLOCK.now() + timedelta(seconds=seconds))


def test_a_stop_waits_for_a_watchdog_in_the_middle_of_its_look_I18(tasks):
    looking = threading.Event()

    def slow_look():
        looking.set()
        threading.Event().wait(0.3)
        return 60.0

    with running(tasks) as runner:
        runner.watchdog.step = slow_look
        runner.watching.wake()
        assert looking.wait(PATIENCE)


def test_a_stop_does_not_need_the_connection_of_whoever_calls_it_I18(tasks, ended):
    """At exit it is the main thread's, idle for long: a server or a firewall may have dropped it."""
    register("job", schedule=soon(), into=tasks)(lambda: None)
    runner = Runner("test", tasks=tasks)
    runner.start()
    ended.wait(1)
    connections[FILE_ALIAS].ensure_connection()
    connections[FILE_ALIAS].connection.close()
    runner.stop(PATIENCE)
    connections[FILE_ALIAS].close()
    assert nothing_is_held()


def test_a_stop_is_bounded_however_long_the_database_takes_R2(tasks, ended, monkeypatch):
    for module in (parts, runner_module):
        monkeypatch.setattr(module, "LAST_WRITES", 0.3)
    register("job", schedule=soon(), into=tasks)(lambda: None)
    runner = Runner("test", tasks=tasks)
    real, answers = runner.member.leave, threading.Event()
    runner.member.leave = lambda: answers.wait(PATIENCE) and real()
    runner.start()
    ended.wait(1)
    waits, join = [], service.Service.join
    monkeypatch.setattr(service.Service, "join", lambda one, seconds: waits.append(seconds) or join(one, seconds))
    runner.stop(0.2)
    assert max(waits) < 0.2 + runner_module.LAST_WRITES + runner_module.LAST_STEPS + 0.1, "as long as was allowed"
    assert runner.watching.is_alive(), "and the database has not answered"
    answers.set()
    runner.watching.join(PATIENCE)
    assert nothing_is_held(), "an answer that comes later is heeded all the same"


def test_a_stop_waits_for_an_async_task_that_takes_its_time_to_be_cancelled_I18(tasks):
    started = threading.Event()

    async def lingers():
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0.1)

    register("lingers", schedule=soon(), into=tasks)(lingers)
    with running(tasks, stop_within=0.1):
        assert started.wait(PATIENCE)


def test_a_job_runs_on_time_and_the_ledger_shows_it_I4(tasks, ended, settings):
    """A start that its plan does not bring, only a poll, comes when the patience of this test is over."""
    settings.SCHEDULER_POLL_SECONDS = 60.0
    schedule = soon()
    register("greet", schedule=schedule, into=tasks)(lambda: "hello")
    with running(tasks):
        ended.wait(1)
    run = RunLog.objects.get()
    assert (run.status, run.result, run.scheduled_for) == (Status.SUCCEEDED, "hello", schedule.at)
    assert run.lateness >= timedelta(0)


def test_an_interval_runs_once_per_slot_I1(tasks, ended):
    register("beat", schedule=Every(seconds=1), into=tasks)(lambda: None)
    with running(tasks):
        ended.wait(2)
    slots = list(RunLog.objects.order_by("scheduled_for").values_list("scheduled_for", flat=True))
    assert slots[1] - slots[0] == timedelta(seconds=1)
    assert len(set(slots)) == len(slots)


def test_a_run_that_stops_when_asked_to_is_left_to_others_at_once_R3_I18(tasks):
    started = threading.Event()

    def polite():
        started.set()
        while not current_run().stop_requested:
            threading.Event().wait(0.01)
        current_run().check_stop()

    register("polite", schedule=soon(), into=tasks)(polite)
    with running(tasks):
        assert started.wait(PATIENCE)
    assert RunLog.objects.get(attempt=1).status == Status.LOST
    assert RunLog.objects.get(attempt=2).status == Status.PENDING


def test_a_run_that_does_not_stop_is_closed_as_lost_for_others_to_take_over_R2_I18(tasks):
    started, let_go = threading.Event(), threading.Event()

    def deaf():
        started.set()
        let_go.wait(PATIENCE)

    register("deaf", schedule=soon(), into=tasks)(deaf)
    with running(tasks, stop_within=0.2):
        assert started.wait(PATIENCE)
    assert RunLog.objects.get(attempt=1).status == Status.LOST
    assert RunLog.objects.get(attempt=2).status == Status.PENDING
    let_go.set()


def test_a_stop_waits_for_a_run_to_end_and_writes_its_end_I18(tasks):
    started = threading.Event()

    def busy():
        started.set()
        while not current_run().stop_requested:
            threading.Event().wait(0.01)
        return "done"

    register("busy", schedule=soon(0.2), into=tasks)(busy)
    with running(tasks):
        assert started.wait(PATIENCE)
    run = RunLog.objects.get()
    assert (run.status, run.result) == (Status.SUCCEEDED, "done")


def test_claims_that_did_not_start_are_given_back_R1_I18(tasks, settings):
    """A slot just ahead is claimed before its instant; a stop in between leaves no trace of it."""
    settings.SCHEDULER_CLAIM_AHEAD = 5.0
    schedule = soon(6)
    register("later", schedule=schedule, into=tasks)(lambda: None)
    runner = Runner("test", tasks=tasks)
    claimed = threading.Event()
    real = runner.pool.submit
    runner.pool.submit = lambda *runs: (real(*runs), runs and claimed.set())
    runner.start()
    assert claimed.wait(PATIENCE)
    runner.stop(PATIENCE)
    assert nothing_is_held()
    assert not RunLog.objects.exists()
    assert Job.objects.get().next_run_at == schedule.at


def test_twenty_async_tasks_at_once_do_not_block_a_sync_one_X1(tasks, ended, settings):
    waiting, sync_ran = set(), threading.Event()

    async def patient():
        waiting.add(current_run().job)
        while not sync_ran.is_set():
            await asyncio.sleep(0.01)

    def sync_one():
        sync_ran.set()

    for number in range(20):
        register(f"async{number}", schedule=soon(0.2), into=tasks)(patient)
    register("sync", schedule=soon(1.0), into=tasks)(sync_one)
    with running(tasks, workers=2, settings=settings):
        ended.wait(21)
    assert len(waiting) == 20
    assert set(RunLog.objects.values_list("status", flat=True)) == {Status.SUCCEEDED}


def test_the_number_of_threads_stays_the_same_M1(tasks, ended, settings):
    for number in range(200):
        register(f"short{number}", schedule=soon(0.2 + number % 4 * 0.2), into=tasks)(lambda: None)
    counts = set()
    with running(tasks, workers=3, settings=settings):
        for done in range(20, 201, 20):
            ended.wait(done)
            counts.add(sum(thread.name.startswith("scheduler-worker") for thread in threading.enumerate()))
    assert counts == {3}


def test_the_ends_of_a_burst_share_transactions(tasks, ended, settings, monkeypatch):
    real, batches = recorder.finish_runs, []

    def finish_runs(engine, ends, **options):
        batches.append(len(ends))
        return real(engine, ends, **options)

    monkeypatch.setattr(recorder, "finish_runs", finish_runs)
    schedule = soon(0.5)
    for number in range(200):
        register(f"short{number}", schedule=schedule, into=tasks)(lambda: None)
    with running(tasks, workers=4, settings=settings):
        ended.wait(200)
    assert sum(batches) == 200
    assert len(batches) < 100


def test_a_thread_that_cannot_be_started_defers_the_run_M1(tasks, ended, settings, monkeypatch):
    real, refused = threading.Thread.start, []

    def start(thread):
        if thread.name.startswith("scheduler-worker") and not refused:
            refused.append(thread.name)
            raise RuntimeError("can't start new thread")
        real(thread)

    monkeypatch.setattr(threading.Thread, "start", start)
    settings.SCHEDULER_POLL_SECONDS = 0.2
    register("job", schedule=soon(), into=tasks)(lambda: None)
    with running(tasks, workers=1, settings=settings):
        ended.wait(1)
    assert refused
    assert RunLog.objects.get().status == Status.SUCCEEDED


def test_what_kills_a_thread_elsewhere_is_a_failed_row_here_and_the_pool_goes_on_O1(tasks, ended, settings):
    errors = [SystemExit(0), SystemExit("x"), KeyboardInterrupt(), GeneratorExit(), asyncio.CancelledError()]
    errors += [MemoryError(), RecursionError(), ExceptionGroup("g", [ValueError()])]

    def raiser(error):
        def task():
            raise error

        return task

    for number, error in enumerate(errors):
        register(f"bad{number}", schedule=soon(0.2), into=tasks)(raiser(error))
    register("ninth", schedule=soon(0.5), into=tasks)(lambda: None)
    with running(tasks, workers=1, settings=settings):
        ended.wait(9)
    assert RunLog.objects.filter(job__name__startswith="bad", status=Status.FAILED).count() == 8
    assert RunLog.objects.get(job__name="ninth").status == Status.SUCCEEDED


@pytest.mark.parametrize("how", ["atomic", "autocommit"])
def test_a_transaction_left_open_is_rolled_back_and_the_next_task_is_clean_B5(how, tasks, ended, settings, caplog):
    found = []

    def leaves_open():
        if how == "atomic":
            transaction.atomic(using=FILE_ALIAS).__enter__()
        else:
            transaction.set_autocommit(False, using=FILE_ALIAS)
        Job.objects.filter(name="next").update(description="half")

    def next_one():
        connection = connections[FILE_ALIAS]
        found.append((connection.in_atomic_block, connection.get_autocommit()))

    register("open", schedule=soon(0.2), into=tasks)(leaves_open)
    register("next", schedule=soon(0.8), into=tasks)(next_one)
    with running(tasks, workers=1, settings=settings):
        ended.wait(2)
    assert "left a transaction open" in caplog.text
    assert found == [(False, True)]
    assert Job.objects.get(name="next").description == ""
    assert set(RunLog.objects.values_list("status", flat=True)) == {Status.SUCCEEDED}


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_dispatcher_that_died_is_replaced_and_jobs_run_N1(tasks, ended, monkeypatch):
    monkeypatch.setattr(watchdog, "LOOK_EVERY", 0.1)
    register("job", schedule=soon(0.6), into=tasks)(lambda: None)
    runner = Runner("test", tasks=tasks)
    real, died = runner.dispatching._step, []

    def dies_once():
        if not died:
            died.append(1)
            raise SystemExit
        return real()

    runner.dispatching._step = dies_once
    runner.start()
    ended.wait(1)
    runner.stop(PATIENCE)
    assert runner.watchdog.restarts == 1
    assert nothing_is_held()


def test_a_change_by_this_process_is_seen_at_once_H1(tasks, ended, settings):
    """That is, by itself: the next poll comes when the patience of this test is over."""
    settings.SCHEDULER_POLL_SECONDS = 60.0
    register("job", schedule=Every(hours=1), into=tasks)(lambda: None)
    with running(tasks) as runner:
        planned = threading.Event()
        real = runner.dispatcher.step

        def step():
            wait = real()
            if Job.objects.filter(next_run_at__isnull=False).exists():
                planned.set()
            return wait

        runner.dispatching._step = step
        runner.dispatching.wake()
        assert planned.wait(PATIENCE)
        Job.objects.filter(name="job").update(schedule=soon(0.2))
        ended.wait(1)
    assert RunLog.objects.get().lateness >= timedelta(0)
