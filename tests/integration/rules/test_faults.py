"""N1: whatever step of a pass fails, once or always, the others go on and work resumes when the fault is over."""

import asyncio
import logging
import sys
import threading
from types import SimpleNamespace

import pytest
from django.db import OperationalError

from scheduler import signals
from scheduler.clock import ManualClock
from scheduler.context import current_run
from scheduler.engine import claim
from scheduler.executors import call as invoking
from scheduler.models import Instance, Job, RunLog, Status
from scheduler.registry import register
from scheduler.runtime import dispatcher, heartbeat, recorder, registration
from scheduler.runtime.watchdog import Watchdog
from tests.factories import at, claim_at, make_job
from tests.integration.rules.process import until

pytestmark = pytest.mark.django_db

ERRORS = [ValueError("odd"), OperationalError("database is locked"), MemoryError()]


class Steps:
    """The services of a process, each doing its guarded steps by itself, as its thread would."""

    def __init__(self, process):
        self.process, runner = process, process.runner
        self.services = {
            service.name: service
            for service in (runner.dispatching, runner.recording, runner.beating, runner.monitoring)
        }

    def all(self, seconds):
        self.process.clock.move_to(at(seconds))
        executor = self.process.runner.pool
        for name in ("heartbeat", "dispatcher", "monitor"):
            self.services[name]._guarded_step()
            while name == "dispatcher" and self.services[name]._guarded_step() == 0.0 and not self.failing(name):
                pass
        until(lambda: not executor._queue and not executor._living, "the end of the runs")
        self.services["recorder"]._guarded_step()

    def failing(self, name):
        return self.services[name].errors_in_a_row > 0

    def errors(self):
        return {name: service.errors for name, service in self.services.items() if service.errors}


@pytest.fixture
def steps(start):
    process = start()
    make_job()
    steps = Steps(process)
    steps.all(0)
    return steps


def fault(monkeypatch, module, name, error, times):
    """Let a function of a module fail, so many times."""
    real, left = getattr(module, name), [times]

    def failing(*args, **kwargs):
        if left[0]:
            left[0] -= 1
            raise error
        return real(*args, **kwargs)

    monkeypatch.setattr(module, name, failing)
    return left


STEPS = {
    "fetch due": (dispatcher, "tick", "dispatcher"),
    "rescue": (dispatcher, "rescue", None),
    "finish": (recorder, "finish_runs", "recorder"),
    "heartbeat": (registration.instances, "renew", "heartbeat"),
}


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("times", [1, 50], ids=["once", "always"])
@pytest.mark.parametrize("step", STEPS)
def test_a_step_that_fails_stops_nobody_else_and_work_resumes_N1_I17(steps, monkeypatch, step, times, error):
    module, name, service = STEPS[step]
    left = fault(monkeypatch, module, name, error, times)
    for seconds in range(10, 70, 10):
        steps.all(seconds)
    assert set(steps.errors()) <= {service}
    assert left[0] < times or service is None
    beat = Instance.objects.get().heartbeat_at
    assert (beat == at(60)) == (service != "heartbeat" or times == 1)
    left[0] = 0
    steps.all(70)
    steps.all(80)
    run = RunLog.objects.get()
    assert (run.status, run.scheduled_for) == (Status.SUCCEEDED, at(60))
    assert steps.process.runner.recorder.pending() == 0
    assert not any(map(steps.failing, steps.services))


PARTS = {
    "now": lambda runner: (runner.clock, "now"),
    "submit": lambda runner: (runner.pool, "submit"),
    "the time to sleep": lambda runner: (runner.dispatcher, "_seconds_to_sleep"),
    "what is free": lambda runner: (runner.pool, "capacity"),
    "what the end means": lambda runner: (runner.recorder, "_settled"),
}


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("times", [1, 50], ids=["once", "always"])
@pytest.mark.parametrize("part", PARTS)
def test_a_part_of_a_pass_that_fails_doubles_and_loses_nothing_N1_I17(steps, monkeypatch, part, times, error):
    """What was claimed when it failed is started once; the number of errors is there to be seen."""
    make_job("other")
    left = fault(monkeypatch, *PARTS[part](steps.process.runner), error, times)
    for seconds in range(59, 66):
        steps.all(seconds)
    assert left[0] < times
    assert sum(steps.errors().values()) >= 1
    left[0] = 0
    steps.all(70)
    steps.all(80)
    assert {(run.job.name, run.status, run.scheduled_for) for run in RunLog.objects.select_related("job")} == {
        (name, Status.SUCCEEDED, at(60)) for name in ("job", "other")
    }
    assert RunLog.objects.count() == 2
    assert not any(map(steps.failing, steps.services))
    assert steps.process.runner.recorder.pending() == 0


@pytest.mark.parametrize("error", ERRORS[1:], ids=lambda error: type(error).__name__)
def test_a_claim_that_fails_half_way_leaves_nothing_behind_and_is_made_again_N1(steps, monkeypatch, error):
    before = Job.objects.filter(name="job").values().get()
    fault(monkeypatch, claim, "insert_runs", error, 1)
    with pytest.raises(type(error)):
        claim_at(steps.process.engine, at(60))
    assert Job.objects.filter(name="job").values().get() == before
    assert not RunLog.objects.exists()
    steps.all(60)
    assert RunLog.objects.get().status == Status.SUCCEEDED


def test_a_claim_that_was_refused_as_a_whole_is_made_job_by_job_at_once_N1(steps, monkeypatch):
    make_job("other")
    fault(monkeypatch, claim, "insert_runs", ERRORS[0], 1)
    assert {one.job.name for one in claim_at(steps.process.engine, at(60)).runs} == {"job", "other"}
    assert RunLog.objects.count() == 2


def test_a_signal_receiver_that_always_fails_breaks_nothing_N1(steps):
    def fails(**_):
        raise MemoryError

    names = ("run_started", "run_finished", "run_skipped", "job_due")
    every = [getattr(signals, name) for name in names if hasattr(signals, name)]
    for signal in every:
        signal.connect(fails)
    try:
        steps.all(60)
        steps.all(120)
    finally:
        for signal in every:
            signal.disconnect(fails)
    assert [run.status for run in RunLog.objects.all()] == [Status.SUCCEEDED] * 2
    assert steps.errors() == {}


async def hears(**_):
    await asyncio.sleep(0)


async def lasts():
    await asyncio.sleep(0)


@pytest.mark.parametrize("task", [lambda: None, lasts], ids=["sync", "async"])
def test_an_async_receiver_of_a_start_breaks_no_run_N1(steps, task):
    define(steps, task)
    signals.run_started.connect(hears)
    try:
        steps.all(60)
    finally:
        signals.run_started.disconnect(hears)
    run = RunLog.objects.get()
    assert (run.status, run.error) == (Status.SUCCEEDED, "")


def test_receivers_of_the_start_of_an_async_task_work_in_a_worker_where_they_may_use_the_database(steps):
    seen = []

    def receiver(run, **_):
        seen.append((threading.current_thread().name.startswith("scheduler-worker"), current_run() is run))

    define(steps, lasts)
    signals.run_started.connect(receiver)
    try:
        steps.all(60)
    finally:
        signals.run_started.disconnect(receiver)
    assert seen == [(True, True)]


@pytest.mark.parametrize("task", [lambda: None, lasts], ids=["sync", "async"])
def test_a_gate_that_exits_fails_its_run_and_harms_no_worker_I7_N1(steps, task):
    define(steps, task, gate=sys.exit)
    for seconds in (60, 120, 180):
        steps.all(seconds)
    assert {run.status for run in RunLog.objects.all()} == {Status.FAILED}
    assert Job.objects.active().count() == 0
    assert all(steps.process.runner.pool.thread_states().values())


class Breaks(logging.Handler):
    def emit(self, record):
        raise OSError("disk full")


@pytest.fixture
def broken_logs():
    """Every log record raises in the code that logs."""
    handler, root = Breaks(), logging.getLogger()
    root.addHandler(handler)
    yield
    root.removeHandler(handler)


@pytest.mark.usefixtures("broken_logs")
class TestALoggingHandlerThatAlwaysFails:
    def test_a_service_that_wants_to_log_its_error_lives_on_N1(self, steps, monkeypatch):
        left = fault(monkeypatch, dispatcher, "tick", ValueError("odd"), 3)
        for seconds in (57, 58, 59, 60):
            steps.all(seconds)
        assert left == [0]
        assert RunLog.objects.get().status == Status.SUCCEEDED

    def test_a_run_ends_and_its_worker_lives_on_N1(self, steps):
        def task():
            logging.getLogger("shop").error("it is broken")

        define(steps, task)
        steps.all(60)
        assert RunLog.objects.get().status == Status.FAILED
        assert "disk full" in RunLog.objects.get().error
        define(steps, lambda: None)
        steps.all(120)
        assert RunLog.objects.latest("pk").status == Status.SUCCEEDED

    def test_a_run_whose_end_cannot_be_logged_ends_N1(self, steps):
        """What it leaves behind is worth a warning, and the warning fails."""

        def task(context):
            context.state["odd"] = object()

        define(steps, task, takes_context=True)
        steps.all(60)
        run = RunLog.objects.get()
        assert (run.status, "disk full" in run.error) == (Status.FAILED, True)
        assert Job.objects.get(name="job").active_runs == 0

    def test_a_watchdog_starts_what_died_before_it_says_so_N1(self):
        started = []
        dead = SimpleNamespace(name="x", is_alive=lambda: False, age=lambda: 0.0, start=lambda: started.append(1))
        with pytest.raises(OSError, match="disk full"):
            Watchdog([dead], ManualClock()).step()
        assert started == [1]

    def test_an_instance_declared_dead_becomes_somebody_new_N1(self, steps):
        old = steps.process.engine.instance_id
        Instance.objects.all().delete()
        steps.services["heartbeat"]._guarded_step()
        assert steps.process.engine.instance_id != old
        assert not steps.process.runner.member.joined


def define(steps, task, **options):
    steps.process.engine.registry.remove("task")
    register("task", into=steps.process.engine.registry, **options)(task)


def test_an_outage_writes_at_most_one_line_in_five_seconds_N1_B1(steps, monkeypatch, caplog, size):
    seconds = size(60, quick=15)
    fault(monkeypatch, dispatcher, "tick", OperationalError("gone"), 10_000)
    for tenth in range(10 * seconds):
        steps.process.go_to(at(tenth / 10))
        steps.services["dispatcher"]._guarded_step()
    lines = [record for record in caplog.records if "Dispatcher failed" in record.getMessage()]
    assert 1 <= len(lines) <= seconds // 5 + 1
    assert steps.services["dispatcher"].errors == 10 * seconds


def test_a_heartbeat_that_fails_for_too_long_stops_the_claims_before_others_take_over_N1(steps, monkeypatch):
    fault(monkeypatch, heartbeat.Member, "renew", OperationalError("gone"), 1000)
    for seconds in range(10, 70, 10):
        steps.all(seconds)
    assert not RunLog.objects.exists(), "its lease could have run out at 50 s"


def test_a_fault_inside_the_call_of_a_task_is_a_failed_run_N1(steps, monkeypatch):
    fault(monkeypatch, invoking, "_call", MemoryError(), 1)
    steps.all(60)
    assert RunLog.objects.get().status == Status.FAILED
    steps.all(120)
    assert RunLog.objects.latest("pk").status == Status.SUCCEEDED
