"""Stopping a process: nothing new starts, nothing is held, and what did not end is run again elsewhere (R1-R3, I18)."""

import asyncio
import threading

import pytest
from django.db import OperationalError

from scheduler import signals
from scheduler.clock import SYSTEM_CLOCK
from scheduler.context import current_run
from scheduler.engine.control import cancel_run
from scheduler.models import Instance, Job, RunLog, Status
from scheduler.registry import register
from scheduler.runtime import parts, recorder, runner
from scheduler.schedules import Every
from tests.factories import T0, at, ledger, make_job
from tests.integration.rules.process import PATIENCE, FlowingClock, real_monotonic, until

pytestmark = pytest.mark.django_db


def stop(process, seconds=0.0):
    process.runner.stop(seconds)
    assert not Instance.objects.exists()
    assert not RunLog.objects.living().exists()
    assert not Job.objects.active().exists()


def test_what_was_claimed_ahead_and_not_started_is_due_again_R1(start, settings):
    settings.SCHEDULER_CLAIM_AHEAD = 5.0
    process = start()
    job = make_job()
    process.dispatch()
    process.dispatch(at(57))
    assert [status for _, _, status in ledger(job)] == [Status.RUNNING], "it is claimed, to start in 3 s"
    stop(process)
    job.refresh_from_db()
    assert (ledger(job), job.wake_at) == ([], at(60))


def test_a_claim_that_was_being_made_while_the_stop_came_is_not_submitted_R1(start):
    process = start()
    make_job()
    process.dispatch()
    process.go_to(at(60))
    process.runner.stopping = True
    process.runner.dispatcher.step()
    assert (process.living(), ledger()) == ([], [])
    assert Job.objects.get(name="job").wake_at == at(60)


def test_after_a_stop_no_run_can_begin_R1(start):
    process = start()
    make_job()
    process.dispatch()
    stop(process)
    assert process.runner.pool.capacity() == 0


def test_after_a_stop_no_worker_that_has_ended_is_taken_for_one_that_died_R1(start, caplog):
    process = start()
    process.dispatch()
    stop(process)
    workers = process.runner.pool.thread_states()
    until(lambda: not any(process.runner.pool.thread_states().values()), "the end of the workers")
    assert process.runner.pool.capacity() == 0
    assert process.runner.pool.thread_states().keys() == workers.keys()
    assert not [record for record in caplog.records if "died" in record.getMessage()]


def test_a_stop_is_bounded_however_deaf_a_task_is_R2(start):
    process = start(clock=FlowingClock(T0))
    task = process.hold()
    process.start_one(task)
    before = real_monotonic()
    stop(process, 0.3)
    assert real_monotonic() - before > 0.25
    assert task.at_once == 1, "it goes on, and was not waited for any longer"
    first, second = RunLog.objects.order_by("attempt")
    assert (first.status, first.reason) == (Status.LOST, "its process was stopped")
    assert (second.status, second.failed_attempts) == (Status.PENDING, 0)


@pytest.mark.parametrize("asked", ["before the stop", "while it waits"])
def test_a_run_that_a_person_cancels_is_cancelled_although_its_process_is_stopped_I18(start, monkeypatch, asked):
    process = start()
    run = process.start_one(process.hold())
    if asked == "before the stop":
        cancel_run(run.pk, actor="ann")
    else:
        monkeypatch.setattr(process.runner.pool, "wait_until_idle", lambda _: cancel_run(run.pk, actor="ann"))
    stop(process)
    (row,) = RunLog.objects.all()
    assert (row.status, row.note, row.reason) == (Status.CANCELLED, "cancelled by ann", "its process was stopped")
    job = Job.objects.get(name="job")
    assert (job.cancellations, job.losses) == (1, 0), "I12"


def test_a_task_that_agrees_to_the_stop_after_a_person_has_cancelled_it_is_cancelled(start, monkeypatch):
    process, stops = start(), threading.Event()

    def agrees():
        run = current_run()
        until(lambda: run.stop_requested, "the wish to stop")
        assert stops.wait(PATIENCE)
        run.check_stop()

    process.engine.registry.remove("task")
    register("task", into=process.engine.registry)(agrees)
    make_job()
    process.dispatch()
    process.dispatch(at(60))
    until(process.living, "the start")
    real = process.runner.pool.wait_until_idle

    def wait(seconds):
        cancel_run(RunLog.objects.get().pk)  # it has been asked to stop, because of the shutdown
        stops.set()
        return real(PATIENCE)

    monkeypatch.setattr(process.runner.pool, "wait_until_idle", wait)
    stop(process)
    assert [row.status for row in RunLog.objects.all()] == [Status.CANCELLED]


def test_a_run_that_is_closed_as_lost_is_told_once_nothing_is_held_any_more_I18(start, caplog):
    process, told = start(), []
    process.start_one(process.hold())

    def hear(signal, run, **_):
        told.append((signal, run.status, Instance.objects.exists()))

    for signal in (signals.run_finished, signals.run_lost):
        signal.connect(hear)
    stop(process)
    for signal in (signals.run_finished, signals.run_lost):
        signal.disconnect(hear)
    assert told == [(signals.run_finished, Status.LOST, False), (signals.run_lost, Status.LOST, False)]
    assert [record.levelname for record in caplog.records if getattr(record, "action", "") == "run_finished"] == [
        "WARNING"
    ]


def test_a_run_that_is_closed_as_lost_is_told_also_when_the_instance_cannot_leave_I18(start, monkeypatch):
    process, told = start(), []
    process.start_one(process.hold())
    monkeypatch.setattr(process.runner.member, "leave", fails)
    hear = lambda run, **_: told.append(run.status)  # noqa: E731
    signals.run_lost.connect(hear)
    process.runner.stop(0)
    signals.run_lost.disconnect(hear)
    assert told == [Status.LOST]


def test_an_end_that_hangs_in_the_database_is_written_by_the_stop_and_not_lost_R2_I18(start, monkeypatch):
    process = start()
    task = process.hold()
    run = process.start_one(task)
    task.let_go.set()
    until(lambda: process.runner.recorder.pending(), "the end of the run")
    real = recorder.finish_runs

    def hangs(engine, ends, **options):
        monkeypatch.setattr(recorder, "finish_runs", real)
        stop(process)
        return real(engine, ends, **options)

    monkeypatch.setattr(recorder, "finish_runs", hangs)
    process.runner.recorder.write()
    run.refresh_from_db()
    assert (run.status, run.result, RunLog.objects.count()) == (Status.SUCCEEDED, "let go", 1)


def fails(*_, **__):
    raise OperationalError("server closed the connection")


@pytest.fixture
def claimed_ahead(start, settings):
    """A process with one run that goes on, and one that waits for its start."""
    settings.SCHEDULER_CLAIM_AHEAD = 5.0
    process = start(clock=FlowingClock(T0))
    process.task = process.hold()
    process.start_one(process.task)
    make_job("ahead", Every(minutes=2))
    process.dispatch()
    process.dispatch(at(117))
    assert RunLog.objects.living().count() == 2
    return process


def test_what_cannot_be_given_back_keeps_nobody_from_waiting_for_runs_and_leaving_I18(claimed_ahead, monkeypatch):
    monkeypatch.setattr(runner, "release_each", fails)
    threading.Timer(0.1, claimed_ahead.task.let_go.set).start()
    stop(claimed_ahead, PATIENCE)
    assert RunLog.objects.get(job__name="job", attempt=1).status == Status.SUCCEEDED
    assert RunLog.objects.get(job__name="ahead", attempt=1).status == Status.LOST


def test_an_end_that_cannot_be_written_is_left_to_others_at_once_I18(claimed_ahead, monkeypatch):
    monkeypatch.setattr(recorder, "finish_runs", fails)
    threading.Timer(0.1, claimed_ahead.task.let_go.set).start()
    stop(claimed_ahead, PATIENCE)
    assert RunLog.objects.get(job__name="job", attempt=1).status == Status.LOST


def test_whoever_cannot_close_its_runs_stays_to_be_found_dead_I7(claimed_ahead, monkeypatch):
    """Runs of an instance that has left nothing behind would be noticed by nobody."""
    monkeypatch.setattr(parts, "close_as_lost", fails)
    claimed_ahead.runner.stop(0.0)
    assert Instance.objects.exists()
    assert RunLog.objects.living().exists()


def test_a_stop_waits_no_longer_than_it_must_R2(start):
    process = start(clock=FlowingClock(T0))
    task = process.hold()
    process.start_one(task)
    threading.Timer(0.1, task.let_go.set).start()
    before = real_monotonic()
    stop(process, 30)
    assert real_monotonic() - before < PATIENCE
    assert RunLog.objects.get().status == Status.SUCCEEDED


def test_an_async_task_is_cancelled_at_the_end_of_the_stop_R2(start):
    process, felt, begun = start(), threading.Event(), threading.Event()

    async def waits():
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            felt.set()

    process.engine.registry.remove("task")
    register("task", into=process.engine.registry)(waits)
    make_job()
    process.dispatch()
    process.dispatch(at(60))
    assert begun.wait(PATIENCE)
    stop(process)
    assert felt.wait(PATIENCE)
    until(lambda: not process.living(), "the end of the run")
    assert RunLog.objects.get(attempt=1).status == Status.LOST


def test_a_second_stop_is_no_error_R2(start):
    process = start()
    process.dispatch()
    stop(process)
    stop(process)


def test_a_stop_before_the_database_was_ever_there_R2(start):
    stop(start())


@pytest.mark.parametrize(("on_lost", "attempts"), [("retry", 2), ("skip", 1)])
def test_the_next_process_takes_the_slot_over_at_once_by_its_policy_R3(start, monkeypatch, on_lost, attempts):
    process = start()
    task = process.hold()
    process.start_one(task, on_lost=on_lost)
    stop(process)
    following = start()
    monkeypatch.setattr(SYSTEM_CLOCK, "now", following.clock.now)
    task.let_go.set()
    following.dispatch(at(61))
    following.until_idle()
    assert [(attempt, status) for slot, attempt, status in ledger() if slot == at(60)] == [
        (1, Status.LOST),
        (2, Status.SUCCEEDED),
    ][:attempts]


def test_ten_stops_in_a_row_spend_no_attempt_and_break_nothing_R3_I11(start):
    for number in range(10):
        process = start()
        task = process.hold()
        if number == 0:
            process.start_one(task, breaker_threshold=1)
        else:
            process.dispatch(at(60 + number))
            task.wait_for_start()
        stop(process)
        task.let_go.set()
    assert RunLog.objects.get(status=Status.PENDING).failed_attempts == 0
    job = Job.objects.get(name="job")
    assert (job.losses, job.consecutive_failures, job.broken_at) == (10, 0, None)
