"""Cancel and replace: runs are asked to stop, wherever they run, and end when they agree."""

import asyncio
import threading
from datetime import timedelta
from types import SimpleNamespace

import pytest

from scheduler.context import current_run
from scheduler.engine import running
from scheduler.engine.control import cancel_run, run_now
from scheduler.exceptions import Refused, UnknownRun
from scheduler.executors.call import stopped
from scheduler.models import Job, RunLog, Status
from scheduler.registry import register
from scheduler.signals import runs_asked_to_stop
from tests.factories import at, finish, make_job
from tests.integration.rules.process import PATIENCE, until

pytestmark = pytest.mark.django_db

TIMED_OUT = "Timed out before its task was called: its gate, or the lock of its slot, took too long to answer."


def polite():
    run = current_run()
    until(lambda: run.stop_requested, "the wish to stop")
    run.check_stop()


async def patient():
    await asyncio.Event().wait()


def run_living(process, function, **options):
    """Start a run of a job in a worker or on the loop; return its row."""
    hand_over(process, function, **options)
    until(process.living, "the start")
    return RunLog.objects.get(status=Status.RUNNING)


def hand_over(process, function, **options):
    """Claim a run of a job and give it to the executor; it may end at once."""
    process.engine.registry.remove("task")
    register("task", into=process.engine.registry)(function)
    make_job(**options)
    process.dispatch()
    process.dispatch(at(60))


@pytest.mark.parametrize("function", [polite, patient], ids=["sync", "async"])
def test_a_living_run_of_this_process_is_asked_at_once_and_is_cancelled(start, function):
    process = start()
    run = run_living(process, function)
    if function is patient:
        until(lambda: process.runner.pool.living()[0].cancel, "the loop")
    cancel_run(run.pk, actor="ann")
    process.until_idle()
    run.refresh_from_db()
    assert (run.status, run.note) == (Status.CANCELLED, "cancelled by ann")
    assert run.reason == "stopped when asked to: cancelled"
    assert (Job.objects.get(name="job").cancellations, Job.objects.get(name="job").consecutive_failures) == (1, 0)


def test_a_run_of_another_process_is_asked_at_its_next_look(start):
    process = start()
    run = run_living(process, polite)
    runs_asked_to_stop.disconnect(dispatch_uid=id(process.runner))  # as if this were said elsewhere
    cancel_run(run.pk)
    process.watch(at(62))
    process.until_idle()
    run.refresh_from_db()
    assert run.status == Status.CANCELLED


def test_a_process_run_is_asked_too(start, monkeypatch):
    """Its worker waits for the child and watches the flag; here a stand-in for the child does."""
    process, asked = start(), threading.Event()

    def stand_in(claimed, context, clock, *, timeout):
        until(lambda: context.stop_requested, "the wish to stop")
        asked.set()
        return stopped(context, clock.now(), clock)

    monkeypatch.setattr("scheduler.executors.process.parent.run_in_process", stand_in)
    run = run_living(process, lambda: None, executor="process")
    cancel_run(run.pk)
    assert asked.wait(PATIENCE)
    process.until_idle()
    run.refresh_from_db()
    assert run.status == Status.CANCELLED


def test_a_deaf_run_goes_on_and_keeps_its_outcome(start):
    process = start()
    task = process.hold()
    run = process.start_one(task)
    cancel_run(run.pk)
    run.refresh_from_db()
    assert (run.status, run.stop_requested_at) == (Status.RUNNING, at(60))
    task.let_go.set()
    process.until_idle()
    run.refresh_from_db()
    assert (run.status, run.result) == (Status.SUCCEEDED, "let go")


def test_asking_twice_keeps_the_first_instant_and_note(start):
    process = start()
    run = process.start_one(process.hold())
    cancel_run(run.pk, actor="ann")
    process.go_to(at(70))
    cancel_run(run.pk, actor="bob")
    run.refresh_from_db()
    assert (run.stop_requested_at, run.note) == (at(60), "cancelled by ann")


def test_an_ended_and_an_unknown_run_are_refused(play):
    make_job()
    (claimed,) = play.tick(60)
    play.end(61)
    with pytest.raises(Refused, match="has ended already"):
        cancel_run(claimed.run.pk)
    with pytest.raises(UnknownRun):
        cancel_run(claimed.run.pk + 1)


def test_a_cancelled_slot_is_not_retried_and_trips_nothing(play):
    job = make_job(retries=3, breaker_threshold=1)
    play.tick(60)
    play.end(61, Status.CANCELLED)
    job.refresh_from_db()
    assert (job.broken_at, job.consecutive_failures, RunLog.objects.waiting().count()) == (None, 0, 0)


@pytest.mark.parametrize("how", ["cancelled", "replaced"])
@pytest.mark.parametrize("status", [Status.FAILED, Status.TIMED_OUT])
def test_a_run_that_was_asked_to_stop_and_fails_all_the_same_is_not_tried_again_I11(play, how, status):
    job = make_job(retries=3, overlap="replace", backoff=0)
    (claimed,) = play.tick(60)
    if how == "cancelled":
        cancel_run(claimed.run.pk)
    else:
        assert play.tick(120) == []
    play.end(121, status)
    assert RunLog.objects.waiting().count() == 0
    job.refresh_from_db()
    assert job.consecutive_failures == 1, "it has failed nevertheless"
    (following,) = play.tick(180)
    assert (following.run.attempt, following.run.trigger) == (1, "schedule")


@pytest.mark.parametrize("how", ["cancelled", "replaced"])
def test_a_run_that_was_asked_to_stop_and_puts_itself_off_is_cancelled_I11(play, how):
    job = make_job(overlap="replace")
    (claimed,) = play.tick(60)
    if how == "cancelled":
        cancel_run(claimed.run.pk)
    else:
        assert play.tick(120) == []
    play.end(121, Status.POSTPONED, postponed_by=timedelta(minutes=5))
    claimed.run.refresh_from_db()
    job.refresh_from_db()
    assert (claimed.run.status, RunLog.objects.waiting().count()) == (Status.CANCELLED, 0)
    assert job.postponed_until is None, "it holds no place"
    (following,) = play.tick(180)
    assert (following.run.attempt, following.run.trigger) == (1, "schedule")


def test_a_pending_run_never_starts(play):
    make_job()
    run = run_now("job")
    cancel_run(run.pk)
    assert play.tick(1) == []
    run.refresh_from_db()
    assert (run.status, run.finished_at) == (Status.CANCELLED, at(0))


class TestWhileItsGateIsAsked:
    """The run lives, and its task has not been called: then it never is, whatever kind of function it is."""

    @pytest.fixture(params=["sync", "async"])
    def gate(self, start, request):
        """A run whose gate takes its time to say yes."""
        process, calls = start(), []
        asked, may_answer = threading.Event(), threading.Event()

        def slow_gate():
            asked.set()
            return may_answer.wait(PATIENCE)

        async def asynchronous():
            calls.append(1)

        process.engine.registry.remove("task")
        function = asynchronous if request.param == "async" else lambda: calls.append(1)
        register("task", gate=slow_gate, into=process.engine.registry)(function)
        make_job(timeout=2, on_lost="skip")
        process.dispatch()
        process.dispatch(at(60))
        assert asked.wait(PATIENCE)
        yield SimpleNamespace(process=process, answer=may_answer.set)
        assert calls == []

    def ended(self, gate):
        gate.answer()
        gate.process.until_idle()
        run = RunLog.objects.get()
        return run.status, run.reason or run.error.splitlines()[0]

    def test_a_cancel_ends_it(self, gate):
        cancel_run(RunLog.objects.get().pk)
        assert self.ended(gate) == (Status.CANCELLED, "stopped when asked to: cancelled")

    def test_its_time_limit_ends_it_F3(self, gate):
        gate.process.watch(at(62))
        assert self.ended(gate) == (Status.TIMED_OUT, TIMED_OUT)

    def test_a_stop_leaves_its_slot_to_others_R3(self, gate):
        gate.process.runner.pool.request_stop()
        assert self.ended(gate) == (Status.LOST, "its process was stopped")


def test_a_cancel_while_its_lock_is_asked_ends_it(start):
    """The same, where hosts share a lock: between yes and call."""
    process = start()
    task = process.hold()

    def asks(living):
        living.stop("cancelled")

    process.runner.pool._refusal = asks
    make_job()
    process.dispatch()
    process.dispatch(at(60))
    process.until_idle()
    assert (RunLog.objects.get().status, task.calls) == (Status.CANCELLED, 0)


def test_a_cancel_while_the_loop_takes_it_is_felt_X1(start, monkeypatch):
    process = start()
    executor = process.runner.pool
    real = executor._callers.loop.run

    def run(*args):
        cancel = real(*args)
        executor.living()[0].stop("cancelled")
        return cancel

    monkeypatch.setattr(executor._callers.loop, "run", run)
    hand_over(process, patient)
    process.until_idle()
    assert RunLog.objects.get().status == Status.CANCELLED


class TestReplace:
    """The living run is asked to stop; the newest slot starts when it has ended."""

    def test_a_living_run_makes_room_for_the_newest_slot_I2(self, start):
        process = start()
        run = run_living(process, polite, overlap="replace")
        process.dispatch(at(120))
        until(lambda: not process.living(), "the end of the first run")
        process.write()
        run.refresh_from_db()
        assert (run.status, run.reason) == (Status.CANCELLED, "stopped when asked to: replaced")
        process.dispatch(at(121))
        until(process.living, "the replacement")
        assert RunLog.objects.get(status=Status.RUNNING).scheduled_for == at(120)

    def test_a_deaf_run_is_not_run_beside_and_only_the_newest_slot_follows_I2(self, start):
        process = start()
        task = process.hold()
        process.start_one(task, overlap="replace")
        for seconds in (120, 180, 240):
            process.dispatch(at(seconds))
        assert task.calls == 1
        task.let_go.set()
        process.until_idle()
        process.dispatch(at(250))
        until(lambda: task.calls == 2, "the replacement")
        process.until_idle()
        newest = RunLog.objects.latest("pk")
        assert (newest.scheduled_for, newest.coalesced, task.most_at_once) == (at(240), 2, 1)

    def test_it_is_asked_once_per_slot_that_comes(self, play, monkeypatch):
        asked = []
        monkeypatch.setattr(
            "scheduler.engine.claim.ask_to_stop", lambda *a: asked.append(a[1]) or running.ask_to_stop(*a)
        )
        job = make_job(overlap="replace")
        play.tick(60)
        for seconds in (120, 121, 122):
            play.tick(seconds)
        assert [ids for ids in asked if ids] == [[job.pk]]
        finish(play.engine, play.open[0], at(130), Status.CANCELLED)
        (claimed,) = play.tick(130)
        assert claimed.run.scheduled_for == at(120)
