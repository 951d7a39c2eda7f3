"""What the workers of the pool keep, and what is said when one is replaced."""

import gc
import threading
import weakref

import pytest

from scheduler.clock import ManualClock
from scheduler.engine.base import Claimed
from scheduler.executors.pool import Pool
from scheduler.models import Job, RunLog
from scheduler.registry import Task
from scheduler.schedules import Every
from tests.factories import T0
from tests.integration.rules.process import until


@pytest.fixture
def executor():
    executor = Pool(lambda *_: None, ManualClock(T0), workers=1)
    assert executor.capacity() == 1
    yield executor
    executor.close()


def submit(executor, function):
    """Run a task and return weak references to the rows of its run."""
    job = Job(pk=1, name="job", task="task", schedule=Every(minutes=1))
    run = RunLog(pk=1, job=job, scheduled_for=T0, started_at=T0)
    executor.submit(Claimed(run, Task(name="task", function=function)))
    return weakref.ref(run), weakref.ref(job)


def quick():
    return "done"


async def quick_on_the_loop():
    return "done"


def failing():
    raise ValueError("x")


@pytest.mark.parametrize("function", [quick, quick_on_the_loop, failing])
def test_an_idle_worker_keeps_nothing_of_its_last_run(executor, function):
    """With its log, a run may be large, and the next one may be a day away."""
    rows = submit(executor, function)
    until(lambda: not executor.run_ids(), "the end of the run")

    def are_gone():
        gc.collect()
        return [row() for row in rows] == [None, None]

    until(are_gone, "the row is dropped")


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_worker_that_dies_is_replaced_and_this_is_said(executor, caplog, monkeypatch):
    def die(*_):
        raise SystemExit

    (worker,) = executor._threads
    monkeypatch.setattr(executor, "_done", die)
    submit(executor, quick)
    until(lambda: not worker.is_alive(), "its end")
    assert caplog.records == []
    executor.capacity()
    (record,) = caplog.records
    assert (record.levelname, record.action, record.service) == ("ERROR", "service_restarted", worker.name)
    assert worker.name in record.getMessage()
    assert [thread.is_alive() for thread in executor._threads] == [True]
    executor.capacity()
    assert len(caplog.records) == 1


def test_a_worker_that_could_not_be_started_is_no_replacement(caplog, monkeypatch):
    def refuse(thread):
        raise RuntimeError("can't start new thread")

    executor = Pool(lambda *_: None, ManualClock(T0), workers=1)
    with monkeypatch.context() as none_left:
        none_left.setattr(threading.Thread, "start", refuse)
        assert executor.capacity() == 0
    assert executor.capacity() == 1
    assert caplog.records == []
    executor.close()


def test_a_pool_whose_workers_are_all_busy_wants_no_tasks_I17(executor):
    """Else the dispatcher would look without a rest while tasks wait, and no other process would be told of them."""
    begun, goes_on = threading.Event(), threading.Event()

    def long():
        begun.set()
        goes_on.wait(20)

    assert executor.wants_tasks()
    submit(executor, long)
    assert begun.wait(20)
    try:
        executor._clock.advance(60)  # it is none of the short ones, of which several are claimed at once
        assert not executor.wants_tasks()
    finally:
        goes_on.set()
    until(lambda: not executor.run_ids() and executor.wants_tasks(), "the worker is free")
