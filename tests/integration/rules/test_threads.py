"""M1: a fixed pool, however many runs; a thread that cannot be had defers a run and loses nothing."""

import threading

import pytest

from scheduler.models import Job, RunLog, Status
from tests.factories import at, make_job

pytestmark = pytest.mark.django_db


def workers():
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("scheduler-worker")]


def test_two_thousand_runs_use_the_same_few_threads_M1(start):
    before = len(workers())
    process = start(workers=3)
    for number in range(100):
        make_job(f"job{number}")
    process.dispatch()
    names = set()
    for minute in range(1, 21):
        process.go_to(at(60 * minute))
        while RunLog.objects.count() < 100 * minute:
            process.dispatch()
            process.until_idle()
        names.add(tuple(sorted(workers())))
        assert len(workers()) == before + 3
    assert len(names) == 1
    assert RunLog.objects.filter(status=Status.SUCCEEDED).count() == 2000


def test_a_worker_that_cannot_be_started_defers_the_run_to_the_next_tick_M1(start, monkeypatch):
    def refuse(thread):
        raise RuntimeError("can't start new thread")

    process = start(workers=1)
    make_job()
    with monkeypatch.context() as none_left:
        none_left.setattr(threading.Thread, "start", refuse)
        process.dispatch()
        process.dispatch(at(60))
    assert not RunLog.objects.exists()
    assert Job.objects.get(name="job").next_start_at == at(60)
    process.dispatch(at(61))
    process.dispatch()
    process.until_idle()
    run = RunLog.objects.get()
    assert (run.status, run.scheduled_for) == (Status.SUCCEEDED, at(60))


def test_a_worker_that_was_killed_is_replaced_M1(start):
    process = start(workers=1)
    make_job()
    process.dispatch()
    (thread,) = process.runner.executor._threads
    with process.runner.executor._changed:
        process.runner.executor._stopping = True
        process.runner.executor._changed.notify_all()
    thread.join(10)
    process.runner.executor._stopping = False
    process.dispatch(at(60))
    process.until_idle()
    assert RunLog.objects.get().status == Status.SUCCEEDED
