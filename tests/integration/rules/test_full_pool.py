"""A run that was claimed and finds every worker held: it is given back, and so it can be stopped, or run elsewhere."""

import threading
from types import SimpleNamespace

import pytest
from django.db import OperationalError

from scheduler.engine.claim_ahead import NO_REACH
from scheduler.engine.control import cancel_run, pause_all, pause_group, pause_job
from scheduler.models import Job, RunLog, Status
from scheduler.registry import register
from scheduler.runtime import dispatcher
from scheduler.schedules import Every
from scheduler.signals import run_finished, runs_asked_to_stop
from tests.factories import T0, at, claim_one, ledger, make_engine, make_job
from tests.integration.rules.process import PATIENCE, FlowingClock, until

pytestmark = pytest.mark.django_db


def row_of(name="job"):
    return RunLog.objects.filter(job__name=name).first()


@pytest.fixture
def full(start):
    """A process whose only worker is held, and a run of “job” that waits for it since a moment."""
    return fill(start)


def fill(start, **options):
    process, calls = start(workers=1), []
    held = process.hold("held")
    register("counted", into=process.engine.registry)(lambda: calls.append(1))
    make_job("held", Every(days=1), task="held", columns={"priority": 1})
    make_job(task="counted", columns={"group": "g"}, **options)
    Job.objects.filter(name="held").update(next_run_at=at(60), wake_at=at(60))
    process.dispatch()
    process.dispatch(at(60))
    held.wait_for_start()
    until(lambda: process.dispatch() or row_of(), "the claim of a run more than there are workers")
    assert row_of().status == Status.RUNNING
    return SimpleNamespace(process=process, calls=calls, run=row_of(), let_go=held.let_go.set)


def pass_half_a_second(full):
    """Let it be a second later, for the monitor's look and the pass that follows from it."""
    full.process.watch(at(61))
    assert full.process.runner.dispatching._woken, "the look had a reason to wake the dispatcher"
    full.process.dispatch()


class TestOthers:
    def test_have_it_after_a_moment(self, full):
        """I15: long runs are not hoarded, instances share a burst."""
        pass_half_a_second(full)
        again = claim_one(make_engine("counted", now=at(61)), at(61)).run
        assert (again.scheduled_for, again.attempt, again.failed_attempts) == (at(60), 1, 0)
        assert again.token > full.run.token

    def test_do_not_have_it_at_once(self, full):
        full.process.watch(at(60.4))
        full.process.dispatch()
        assert row_of().status == Status.RUNNING

    def test_it_is_claimed_no_more_while_the_worker_is_held(self, full):
        for seconds in (61, 62, 63, 119):
            full.process.dispatch(at(seconds))
        assert (row_of(), Job.objects.get(name="job").token) == (None, full.run.token)

    def test_it_is_claimed_again_as_soon_as_the_worker_is_free(self, full):
        pass_half_a_second(full)
        full.process.runner.dispatching._woken = False
        full.let_go()
        until(lambda: full.process.runner.dispatching._woken, "the end of the run wakes the dispatcher")
        full.process.dispatch()
        full.process.until_idle()
        assert ledger(Job.objects.get(name="job")) == [(at(60), 1, Status.SUCCEEDED)]
        assert full.calls == [1]

    def test_an_attempt_that_was_promised_is_promised_again_and_none_is_spent_I11(self, full):
        RunLog.objects.filter(pk=full.run.pk).update(attempt=2, failed_attempts=1, trigger="retry")
        pass_half_a_second(full)
        again = row_of()
        assert (again.status, again.attempt, again.failed_attempts) == (Status.PENDING, 2, 1)


class TestAPause:
    """I13: nothing starts after it has committed, but what was claimed a moment ago."""

    @pytest.mark.parametrize(
        "pause", [lambda: pause_job("job"), lambda: pause_group("g"), pause_all], ids=["job", "group", "everything"]
    )
    def test_reaches_it(self, full, pause):
        pause()
        pass_half_a_second(full)
        full.let_go()
        full.process.until_idle()
        full.process.dispatch(at(62))
        assert (row_of(), full.calls) == (None, [])


class TestACancel:
    def test_of_this_process_reaches_it_before_its_call(self, full):
        """Even when a worker takes it before anybody looks."""
        cancel_run(full.run.pk, actor="ann")
        full.let_go()
        full.process.until_idle()
        assert (row_of().status, row_of().note, full.calls) == (Status.CANCELLED, "cancelled by ann", [])

    @pytest.mark.parametrize("elsewhere", [False, True], ids=["here", "elsewhere"])
    def test_ends_it_while_the_worker_is_held_and_it_is_not_run_again(self, full, elsewhere):
        told = []
        run_finished.connect(hear := lambda run, **_: told.append(run.status))
        if elsewhere:
            runs_asked_to_stop.disconnect(dispatch_uid=id(full.process.runner))
        cancel_run(full.run.pk)
        pass_half_a_second(full)
        run_finished.disconnect(hear)
        run, job = row_of(), Job.objects.get(name="job")
        assert (run.status, run.reason, run.started_at) == (Status.CANCELLED, "asked to stop before it began", None)
        assert (job.cancellations, job.active_runs, job.next_run_at) == (1, 0, at(120))
        assert (full.calls, told) == ([], [Status.CANCELLED])

    def test_is_heeded_by_a_stop_of_the_process_R1(self, full):
        cancel_run(full.run.pk)
        full.process.runner.stop(0.0)
        assert row_of().status == Status.CANCELLED

    def test_by_its_own_next_slot_lets_that_one_start(self, start):
        """`overlap="replace"`: the run that waits makes room, as one that goes on does."""
        full = fill(start, overlap="replace")
        full.process.runner.pool.stop_runs([full.run.pk], "replaced")
        full.let_go()
        full.process.until_idle()
        assert (row_of().status, row_of().reason) == (Status.CANCELLED, "stopped when asked to: replaced")
        assert full.calls == []


class TestADatabaseThatIsAway:
    """What could not be given back is held by nobody else, and is not started here."""

    @pytest.mark.parametrize("answer_lost", [False, True], ids=["not committed", "answer lost"])
    def test_gets_it_back_when_it_is_there_again(self, full, monkeypatch, answer_lost):
        real = dispatcher.release_each

        def away(*args):
            monkeypatch.setattr(dispatcher, "release_each", real)
            if answer_lost:
                real(*args)
            raise OperationalError("the server closed the connection")

        monkeypatch.setattr(dispatcher, "release_each", away)
        with pytest.raises(OperationalError):
            full.process.dispatch(at(61))
        full.process.runner.dispatcher._in_pass = True  # and claims are in doubt, too: what nobody holds is adopted
        full.let_go()
        full.process.dispatch(at(61))
        full.process.until_idle()
        full.process.dispatch(at(62))
        full.process.until_idle()
        assert ledger(Job.objects.get(name="job")) == [(at(60), 1, Status.SUCCEEDED)]
        assert full.calls == [1]

    def test_has_it_given_back_by_a_stop_R1(self, full, monkeypatch):
        def away(*_):
            raise OperationalError("the server closed the connection")

        monkeypatch.setattr(dispatcher, "release_each", away)
        with pytest.raises(OperationalError):
            full.process.dispatch(at(61))
        full.let_go()
        full.process.runner.stop(PATIENCE)
        assert (row_of(), Job.objects.get(name="job").wake_at) == (None, at(60))


def test_what_waits_for_its_instant_is_not_given_back_I4(start, settings):
    settings.SCHEDULER_CLAIM_AHEAD = 5.0
    process = start(workers=1)
    make_job()
    process.dispatch()
    process.dispatch(at(57))
    token = row_of().token
    process.watch(at(59))
    process.dispatch()
    assert (row_of().status, row_of().token) == (Status.RUNNING, token)


def test_a_worker_that_asks_the_gate_of_an_async_task_is_not_free(start):
    process, asked, answer = start(workers=1), threading.Event(), threading.Event()

    def gate():
        asked.set()
        return answer.wait(PATIENCE)

    async def asynchronous(): ...

    process.engine.registry.remove("task")
    register("task", gate=gate, into=process.engine.registry)(asynchronous)
    make_job()
    process.dispatch()
    process.dispatch(at(60))
    assert asked.wait(PATIENCE)
    process.go_to(at(61))
    assert process.runner.pool.capacity() == 0
    answer.set()
    process.until_idle()
    until(lambda: process.runner.pool.capacity() == 1, "the worker is free again")


def test_a_pool_of_long_runs_claims_no_run_ahead_of_a_free_worker(start):
    """Also where the runs before were short, so that hundreds of them would be claimed at once."""
    process = start(workers=2, clock=FlowingClock(T0))
    process.runner.pool._pace.seconds_per_run = 0.0001
    task = process.hold()
    for number in range(6):
        make_job(f"job{number}")
    process.dispatch()
    process.dispatch(at(60))
    until(lambda: task.at_once == 2, "the start of both")
    process.go_to(at(61))
    process.dispatch()
    assert RunLog.objects.living().count() == 2
    assert Job.objects.filter(wake_at=at(60)).count() == 4


def test_a_pool_reaches_as_far_ahead_as_its_free_workers_get_in_a_turn(start):
    """I15: a burst that is known beforehand is claimed whole, and nothing is hoarded for workers that are held."""
    process = start(workers=2)
    executor, task = process.runner.pool, process.hold()
    process.dispatch()
    assert (executor.reach().seconds, executor.reach().count) == (1.0, 2000)
    process.start_one(task)
    assert executor.reach().seconds == 0.5
    make_job("other")
    process.dispatch()
    process.dispatch(at(120))
    until(lambda: task.at_once == 2, "the start of the other")
    assert executor.reach() == NO_REACH
    task.let_go.set()
    process.until_idle()
    assert "task" in executor.reach().known
