"""Claims that were not started are given back: nothing is lost, nothing is double."""

import pytest
from django.db import connection

from scheduler.engine.release import release_runs
from scheduler.engine.sync.follow_code import take_back
from scheduler.models import Job, RunLog, Status, Trigger
from scheduler.models.job_columns import NO_PLAN, REFUSED, WHERE_IT_GOES_ON, to_replan
from scheduler.policy.codec import from_options
from scheduler.schedules import DailyAt, Every
from tests.factories import MINUTE, T0, at, claim_at, claim_one, finish, ledger, make_engine, make_job, run_at, tick_at

pytestmark = pytest.mark.django_db


def test_a_slot_given_back_is_due_again_at_once_I3_I18_R1():
    job = make_job()
    engine, other = make_engine(), make_engine()
    claimed = claim_one(engine, at(60))
    release_runs(engine, [claimed])
    assert ledger(job) == []
    again = claim_one(other, at(61)).run
    assert (again.scheduled_for, again.trigger) == (at(60), Trigger.SCHEDULE)
    assert again.token > claimed.run.token


def test_a_void_claim_cannot_end_the_run_that_took_the_slot_again_I5():
    job = make_job()
    engine = make_engine()
    claimed = claim_one(engine, at(60))
    release_runs(engine, [claimed])
    claim_one(engine, at(61))
    finish(engine, claimed, at(62), result="void", in_doubt=True)
    assert ledger(job) == [(at(60), 1, Status.RUNNING)]


@pytest.mark.parametrize("schedule", [Every(minutes=1), Every(minutes=1, from_completion=True)])
def test_a_slot_given_back_after_its_policies_were_changed_is_not_forgotten_I3(schedule):
    """A rolling deploy: the new release changes `retries`, then the old process gives back what it has not begun."""
    job, engine = make_job(schedule=schedule), make_engine()
    claimed = claim_one(engine, at(60))
    Job.objects.filter(pk=job.pk).update(policy=from_options({"retries": 1}))
    release_runs(engine, [claimed])
    assert [one.run.scheduled_for for one in tick_at(engine, at(61)).claims.runs] == [at(60)]


def test_a_slot_given_back_after_its_task_was_gone_waits_for_its_return_I3():
    make_job()
    engine = make_engine()
    claimed = claim_one(engine, at(60))
    Job.objects.update(orphaned_at=at(61), **to_replan(WHERE_IT_GOES_ON, wake_at=None))
    release_runs(engine, [claimed])
    take_back(engine, ["task"])
    assert [one.run.scheduled_for for one in tick_at(engine, at(62)).claims.runs] == [at(60)]


def test_a_slot_given_back_after_its_job_was_set_aside_waits_for_its_change_I3():
    make_job()
    engine = make_engine()
    claimed = claim_one(engine, at(60))
    Job.objects.update(problem=f"{REFUSED}x", **NO_PLAN)
    release_runs(engine, [claimed])
    assert tick_at(engine, at(62)).claims.runs == []
    Job.objects.update(problem="", **to_replan(WHERE_IT_GOES_ON))
    assert [one.run.scheduled_for for one in tick_at(engine, at(63)).claims.runs] == [at(60)]


def test_a_slot_of_a_schedule_that_is_another_by_now_does_not_come_back_H1():
    job, engine = make_job(), make_engine()
    claimed = claim_one(engine, at(60))
    Job.objects.filter(pk=job.pk).update(schedule=Every(minutes=2))
    release_runs(engine, [claimed])
    assert tick_at(engine, at(61)).claims.runs == []


def test_a_catch_up_given_back_brings_back_every_slot_it_counted_I3():
    job = make_job()
    engine = make_engine()
    release_runs(engine, [claim_one(engine, at(minutes=10))])
    run = claim_one(engine, at(minutes=10)).run
    assert (run.scheduled_for, run.coalesced, run.coalesced_from) == (at(minutes=10), 9, at(minutes=1))
    assert len(ledger(job)) == 1


def test_a_retry_given_back_is_promised_again_I11():
    job = make_job(schedule=DailyAt(hour=13), retries=1, backoff=[10])
    engine = make_engine()
    run_at(engine, at(hours=1), Status.FAILED)
    release_runs(engine, [claim_one(engine, at(hours=1, seconds=10))])
    again = claim_one(engine, at(hours=1, seconds=11)).run
    assert (again.attempt, again.trigger) == (2, Trigger.RETRY)
    assert len(ledger(job)) == 2


@pytest.mark.parametrize("trigger", [Trigger.SCHEDULE, Trigger.RETRY])
def test_a_run_that_was_cancelled_before_it_began_is_not_given_back_but_ends(trigger):
    job = make_job(schedule=DailyAt(hour=13), retries=1, backoff=[10])
    engine, now = make_engine(), at(hours=1)
    if trigger == Trigger.RETRY:
        run_at(engine, now, Status.FAILED)
        now = at(hours=1, seconds=10)
    claimed = claim_one(engine, now)
    RunLog.objects.filter(pk=claimed.run.pk).update(stop_requested_at=now, note="cancelled by ann")
    settled = release_runs(engine, [claimed])
    run = RunLog.objects.get(pk=claimed.run.pk)
    assert (run.status, run.reason, run.trigger) == (Status.CANCELLED, "asked to stop before it began", trigger)
    assert (run.started_at, run.finished_at) == (None, now)
    assert settled.finished == [run]
    job.refresh_from_db()
    assert (job.active_runs, job.cancellations, job.next_run_at) == (0, 1, at(days=1, hours=1))
    assert claim_at(engine, now + MINUTE).runs == []


def test_the_next_slot_of_a_job_follows_a_run_that_was_to_be_replaced_before_it_began():
    job, engine = make_job(overlap="replace"), make_engine()
    claimed = claim_one(engine, at(60))
    assert claim_at(engine, at(120)).asked_to_stop == [claimed.run.pk]
    release_runs(engine, [claimed])
    claim_one(engine, at(121))
    assert ledger(job) == [(at(60), 1, Status.CANCELLED), (at(120), 1, Status.RUNNING)]


def test_only_the_holder_of_the_token_can_give_back():
    job = make_job()
    engine = make_engine()
    claimed = claim_one(engine, at(60))
    RunLog.objects.update(token=9)
    release_runs(engine, [claimed])
    assert ledger(job) == [(at(60), 1, Status.RUNNING)]
    job.refresh_from_db()
    assert job.active_runs == 1


def test_a_job_paused_meanwhile_gets_its_slot_back_only_as_history_I13():
    job = make_job()
    engine = make_engine()
    claimed = claim_one(engine, at(60))
    Job.objects.filter(pk=job.pk).update(paused_at=T0, next_run_at=None, wake_at=None)
    release_runs(engine, [claimed])
    job.refresh_from_db()
    assert (job.active_runs, job.wake_at) == (0, None)
    assert claim_at(engine, at(120)).runs == []


class TestOneThatSomebodyAskedToStop:
    def test_ends_as_cancelled_and_its_slot_is_not_run_again_I3(self):
        job = make_job()
        engine = make_engine()
        claimed = claim_one(engine, at(60))
        RunLog.objects.update(stop_requested_at=at(60.2))
        settled = release_runs(engine, [claimed])
        run = RunLog.objects.get()
        assert (run.status, run.started_at, run.finished_at) == (Status.CANCELLED, None, at(60.2))
        assert [one.pk for one in settled.finished] == [run.pk]
        job.refresh_from_db()
        assert (job.cancellations, job.active_runs, job.next_run_at, job.last_run_at) == (1, 0, at(120), None)

    def test_makes_room_for_what_waits_for_its_end(self):
        make_job(overlap="replace")
        engine = make_engine()
        claimed = claim_one(engine, at(60))
        assert claim_at(engine, at(120)).asked_to_stop == [claimed.run.pk]
        release_runs(engine, [claimed])
        assert claim_one(engine, at(120.5)).run.scheduled_for == at(120)

    def test_leaves_another_run_of_its_job_to_be_given_back(self):
        job = make_job(overlap="allow", max_concurrent=2)
        engine = make_engine()
        first, second = claim_one(engine, at(60)), claim_one(engine, at(120))
        RunLog.objects.filter(pk=first.run.pk).update(stop_requested_at=at(120))
        release_runs(engine, [first, second])
        assert ledger(job) == [(at(60), 1, Status.CANCELLED)]
        job.refresh_from_db()
        assert (job.active_runs, job.next_run_at, job.cancellations) == (0, at(120), 1)


@pytest.mark.parametrize("column", ["schedule", "policy"])
def test_a_job_that_nobody_can_read_any_more_is_given_back_to_be_set_aside(column):
    job, other = make_job(), make_job("other")
    engine = make_engine()
    claims = claim_at(engine, at(60)).runs
    garbage = {"schedule": '{"type": "lunar"}', "policy": '{"overlap": "maybe"}'}[column]
    with connection.cursor() as cursor:
        name, table = connection.ops.quote_name(column), connection.ops.quote_name("scheduler_job")
        cursor.execute(f"UPDATE {table} SET {name} = %s WHERE id = %s", [garbage, job.pk])
    release_runs(engine, claims)
    assert [claimed.job.name for claimed in tick_at(engine, at(61)).claims.runs] == ["other"]
    job.refresh_from_db()
    assert (job.job_state, job.active_runs, ledger(job)) == ("invalid", 0, [])
    assert ledger(other) == [(at(60), 1, Status.RUNNING)]


def test_many_jobs_are_given_back_together():
    for number in range(10):
        make_job(f"job{number}")
    engine = make_engine()
    release_runs(engine, claim_at(engine, at(60)).runs)
    assert len(claim_at(engine, at(60)).runs) == 10
