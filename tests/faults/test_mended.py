"""Defects that the fault suite found, each told again in one process and in a moment."""

import asyncio
import threading
from datetime import timedelta

import pytest

from scheduler.clock import ManualClock
from scheduler.engine.base import Claimed
from scheduler.engine.instances import dead_instances
from scheduler.engine.mend.clock_change import clock_moved_back, was_set_back
from scheduler.engine.release import release_runs
from scheduler.engine.rescue import rescue
from scheduler.engine.running import unheard_claims
from scheduler.engine.tick import tick
from scheduler.executors.call import ainvoke, context_for, from_to
from scheduler.executors.pool import Pool
from scheduler.models import Instance, Job, RunLog
from scheduler.registry import Task
from scheduler.runtime.database_clock import DatabaseClock
from scheduler.runtime.heartbeat import Heartbeat
from scheduler.runtime.recorder import Recorder
from scheduler.schedules import AfterJobs, Every
from tests.factories import HOUR, T0, at, claim_one, ended, finish, make_engine, make_job, run_at

database = pytest.mark.django_db


@database
def test_a_claim_whose_commit_was_not_answered_is_found_again():
    make_job(schedule=Every(seconds=10))
    engine = make_engine()
    claimed = claim_one(engine, at(10))
    (found,) = unheard_claims(engine, known=set())
    assert (found.run.pk, found.run.token, found.start_at) == (claimed.run.pk, claimed.run.token, at(10))
    assert unheard_claims(engine, known={claimed.run.pk}) == []
    assert unheard_claims(make_engine(now=at(10)), known=set()) == [], "those of others are theirs"


@database
def test_a_job_that_is_busy_while_the_clock_is_set_back_goes_on_afterwards():
    job = make_job(schedule=Every(seconds=10))
    engine = make_engine()
    claimed = claim_one(engine, at(10) + 2 * HOUR)
    clock_moved_back(engine, at(20))
    finish(engine, claimed, at(21), in_doubt=True)
    job.refresh_from_db()
    assert at(21) <= job.wake_at <= at(31)


@database
def test_a_dependent_job_does_not_wait_for_the_time_of_the_wrong_clock_again():
    make_job("parent", schedule=Every(seconds=10))
    child = make_job("child", schedule=AfterJobs("parent"))
    Job.objects.filter(name="parent").update(last_success_at=at(0) + HOUR)
    Job.objects.filter(pk=child.pk).update(last_slot=at(0) + HOUR)
    clock_moved_back(make_engine(), at(60))
    child.refresh_from_db()
    assert child.last_slot == at(60)
    assert Job.objects.get(name="parent").last_success_at == at(60)


@database
def test_a_promised_retry_waits_no_longer_than_its_backoff_after_the_clock_was_set_back():
    make_job(schedule=Every(seconds=10), retries=1, backoff=[30])
    engine = make_engine()
    run_at(engine, at(10) + HOUR, "failed")
    clock_moved_back(engine, at(20))
    assert RunLog.objects.waiting().get().due_at == at(50)


@database
def test_a_clock_that_was_set_back_between_two_starts_is_noticed_by_the_ledger():
    make_job(schedule=Every(seconds=10))
    engine = make_engine()
    run_at(engine, at(10) + HOUR)
    assert was_set_back(engine, lambda: at(20))
    assert not was_set_back(engine, lambda: at(20) + HOUR)


def test_the_end_of_a_run_is_not_in_the_future_when_the_clock_was_set_back():
    clock = ManualClock(T0)
    assert from_to(at(3600), clock) == (T0, T0)
    assert from_to(at(0.5), clock) == (at(0.5), at(0.5)), "a start claimed a moment ahead"


def test_a_step_of_this_host_does_not_change_the_time_of_the_database():
    local = ManualClock(T0)
    clock = DatabaseClock(local)
    clock._go_by(at(3), local.monotonic(), offset=timedelta(seconds=3))
    local.set(at(7200))
    assert clock.now() == at(3)


@database
def test_an_instance_that_renewed_in_the_last_moment_keeps_its_runs(monkeypatch):
    make_job(schedule=Every(seconds=10))
    owner = make_engine()
    claimed = claim_one(owner, at(10))
    rescuer = make_engine(now=at(200))

    def renews_meanwhile(*known):
        dead = dead_instances(*known)
        Instance.objects.filter(pk=owner.instance_id).update(heartbeat_at=at(200))
        return dead

    monkeypatch.setattr("scheduler.engine.rescue.dead_instances", renews_meanwhile)
    assert rescue(rescuer, at(200), lambda process: False).finished == []
    assert RunLog.objects.get(pk=claimed.run.pk).status == "running"


def test_nothing_starts_while_the_lease_is_in_doubt(monkeypatch):
    asked = threading.Event()

    def may_start() -> bool:
        asked.set()
        return False

    class Claimed:
        start_at = T0
        run, job, task = RunLog(pk=1), Job(), Task(name="task", function=print)

    clock = ManualClock(T0)
    executor = Pool(lambda *_: None, clock, workers=1, may_start=may_start)
    executor.capacity()
    executor.submit(Claimed())  # type: ignore[arg-type]
    assert asked.wait(10)
    assert executor.living() == []
    assert len(executor.withdraw()) == 1
    executor.close()


def test_runs_are_asked_to_stop_although_the_renewal_itself_fails():
    stopped = []

    class Member:
        joined = True

        def renew(self):
            raise ConnectionError("the database is away")

        def may_claim(self):
            return False

        def runs_may_go_on(self):
            return False

    class Living:
        def stop(self, reason):
            stopped.append(reason)

    class Executor:
        def living(self):
            return [Living()]

    with pytest.raises(ConnectionError):
        Heartbeat(Member(), Executor()).step()  # type: ignore[arg-type]
    assert stopped == ["lease"]


@database
def test_an_end_that_waited_for_the_database_while_the_clock_was_set_back_is_not_in_the_future():
    job = make_job(schedule=Every(seconds=10))
    engine = make_engine()
    recorder = Recorder(engine, lambda settled: None, now=lambda: at(20))
    late = ended(claim_one(engine, at(10)), at(90))
    recorder.put(Claimed(late.run, engine.registry.get("task")), late.outcome)
    recorder.write()
    job.refresh_from_db()
    assert job.last_finished_at == at(20)
    assert job.wake_at <= at(30)


@database
def test_an_async_task_that_has_ended_is_not_failed_by_a_stop_that_comes_too_late():
    make_job(schedule=Every(seconds=10))
    claimed = claim_one(make_engine(), at(10))

    async def ends_just_when_it_is_cancelled() -> str:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        return "done"

    late = Claimed(claimed.run, Task(name="task", function=ends_just_when_it_is_cancelled))
    outcome = asyncio.run(ainvoke(late, context_for(late), ManualClock(at(10))))
    assert (outcome.status, outcome.result) == ("succeeded", "done")


@database
def test_very_many_new_jobs_are_planned_by_the_hundred_and_although_no_worker_is_free():
    for number in range(600):
        make_job(f"new-{number}", planned_at=None)
    engine = make_engine()
    assert tick(engine, at(0), ahead=timedelta(0), capacity=0).again
    assert Job.objects.filter(next_run_at__isnull=False).count() == 500


@database
def test_due_work_does_not_wait_until_very_many_new_jobs_are_planned_one_by_one():
    make_job("due", schedule=Every(seconds=10))
    for number in range(600):
        make_job(f"new-{number}", planned_at=None)
    engine = make_engine()
    ran = [run.job.name for _ in range(2) for run in tick(engine, at(10), ahead=timedelta(0), capacity=101).claims.runs]
    assert ran == ["due"]


@database
def test_an_async_task_that_no_loop_takes_has_failed_and_its_worker_goes_on(monkeypatch):
    async def task() -> None: ...

    def no_descriptor() -> None:
        raise OSError("Too many open files")

    ended = threading.Event()
    outcomes = []

    def done(claimed, outcome) -> None:
        outcomes.append(outcome)
        ended.set()

    make_job(schedule=Every(seconds=10))
    claimed = Claimed(claim_one(make_engine(), at(10)).run, Task(name="task", function=task))
    monkeypatch.setattr("scheduler.executors.loop.asyncio.new_event_loop", no_descriptor)
    executor = Pool(done, ManualClock(at(10)), workers=1)
    executor.capacity()
    executor.submit(claimed)
    assert ended.wait(10)
    assert outcomes[0].status == "failed"
    assert "Too many open files" in outcomes[0].error
    assert executor.wait_until_idle(10)
    assert all(executor.thread_states().values())
    executor.close()


@database
def test_a_slot_that_is_given_back_still_waits_for_the_end_of_its_backoff():
    job = make_job(schedule=Every(seconds=10), backoff=[13])
    engine = make_engine()
    run_at(engine, at(10), "failed")
    job.refresh_from_db()
    planned = job.next_run_at, job.wake_at
    assert planned == (at(20), at(23))
    release_runs(engine, [claim_one(engine, at(23))])
    job.refresh_from_db()
    assert (job.next_run_at, job.wake_at) == planned
