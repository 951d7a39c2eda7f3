"""Claim: each due slot is taken once, whoever else is taking."""

from datetime import timedelta

import pytest
from django.db import connection

from scheduler.engine import claim
from scheduler.engine.decide import decide
from scheduler.models import Job, RunLog, Status, Trigger
from scheduler.policy.codec import from_options
from scheduler.schedules import Every
from tests.factories import T0, at, claim_at, claim_one, finish, ledger, make_engine, make_job, tick_at

pytestmark = pytest.mark.django_db


def test_nothing_starts_before_its_slot_I4():
    make_job()
    engine = make_engine()
    assert claim_at(engine, at(59.999)).runs == []
    assert claim_one(engine, at(60)).run.scheduled_for == at(60)


def test_a_slot_is_claimed_once_by_two_engines_I1_I2():
    job = make_job()
    one, other = make_engine(), make_engine()
    assert len(claim_at(one, at(60)).runs) == 1
    assert claim_at(other, at(60)).runs == []
    assert ledger(job) == [(at(60), 1, Status.RUNNING)]


def test_a_claim_writes_the_run_and_the_plan_together():
    job = make_job(overlap="allow", max_concurrent=3)
    engine = make_engine()
    run = claim_one(engine, at(61)).run
    job.refresh_from_db()
    assert (run.trigger, run.token, run.instance_id) == (Trigger.SCHEDULE, 1, engine.instance_id)
    assert run.started_at == at(61)
    assert (job.last_slot, job.next_run_at, job.wake_at) == (at(60), at(120), at(120))
    assert job.active_runs == 1


def test_the_next_slot_is_later_than_the_claimed_one_and_on_the_grid_I8_I9():
    job = make_job()
    engine = make_engine()
    for minute in range(1, 6):
        claimed = claim_one(engine, at(minute * 60 + 7))
        job.refresh_from_db()
        assert job.next_run_at == at((minute + 1) * 60)
        assert job.next_run_at > claimed.run.scheduled_for
        finish(engine, claimed, at(minute * 60 + 8))


def test_tokens_of_a_job_grow_I5():
    make_job()
    engine = make_engine()
    tokens = []
    for minute in range(1, 4):
        claimed = claim_one(engine, at(minute * 60))
        tokens.append(claimed.run.token)
        finish(engine, claimed, at(minute * 60))
    assert tokens == [1, 2, 3]


def test_a_batch_takes_the_longest_waiting_jobs_up_to_the_limit():
    for number in range(5):
        make_job(f"job{number}", Every(seconds=50 - number))
    engine = make_engine()
    assert [one.job.name for one in claim_at(engine, at(55), limit=3).runs] == ["job4", "job3", "job2"]
    assert [one.job.name for one in claim_at(engine, at(55), limit=3).runs] == ["job1", "job0"]


def test_slots_just_ahead_are_claimed_to_start_at_their_instant():
    make_job()
    engine = make_engine()
    assert claim_at(engine, at(59.7), ahead=0.25).runs == []
    (claimed,) = claim_at(engine, at(59.8), ahead=0.25).runs
    assert claimed.start_at == at(60)


@pytest.mark.parametrize("changed", [{"token": 7}, {"wake_at": at(30)}], ids=["claimed by another", "planned anew"])
def test_a_lost_race_changes_nothing_and_is_counted(changed, monkeypatch):
    job = make_job()
    engine = make_engine()

    def meanwhile(engine, job, *more):
        decision = decide(engine, job, *more)
        Job.objects.filter(pk=job.pk).update(**changed)
        return decision

    monkeypatch.setattr(claim, "decide", meanwhile)
    assert claim_at(engine, at(60)).runs == []
    assert engine.lost_races == 1
    assert ledger(job) == []


def test_a_slot_the_ledger_already_has_is_stepped_over_and_others_are_claimed_I1():
    restored, healthy = make_job("restored"), make_job("healthy")
    RunLog.objects.create(job=restored, scheduled_for=at(60), status=Status.SUCCEEDED)
    engine = make_engine()
    assert [one.job.name for one in claim_at(engine, at(60)).runs] == ["healthy"]
    restored.refresh_from_db()
    assert restored.next_run_at == at(120)
    assert ledger(restored) == [(at(60), 1, Status.SUCCEEDED)]
    assert ledger(healthy) == [(at(60), 1, Status.RUNNING)]


def test_a_job_of_another_service_is_left_to_it():
    job = make_job(task="theirs")
    make_engine("theirs")
    ours = make_engine("ours")
    assert tick_at(ours, at(60)).claims.runs == []
    assert ours.foreign_tasks == {"theirs"}
    assert tick_at(ours, at(61)).wake_at is None, "a foreign job must not wake us"
    job.refresh_from_db()
    assert (job.orphaned_at, job.wake_at) == (None, at(60))


def test_a_job_whose_task_nobody_registers_is_orphaned_when_due():
    job = make_job(task="gone")
    engine = make_engine("task")
    assert tick_at(engine, at(60)).claims.runs == []
    job.refresh_from_db()
    assert job.job_state == "orphaned"
    assert "gone" in job.problem
    assert ledger(job) == []


@pytest.mark.parametrize("rows", [{"schedule": "cron 61 * * * *"}, {"policy": '{"overlap":"sometimes"}'}])
def test_an_unreadable_row_is_set_aside_and_twenty_healthy_ones_keep_their_time_N2(rows):
    bad = make_job("bad")
    for number in range(20):
        make_job(f"job{number}")
    _write_raw(bad, rows)
    engine = make_engine()
    assert len(claim_at(engine, at(60)).runs) == 20
    bad.refresh_from_db()
    assert bad.job_state == "invalid"
    assert bad.problem
    assert bad.wake_at == at(60), "whoever can read it runs it"
    assert claim_at(engine, at(61)).looked_at == 0, "a bad row must not come up at every tick"


def test_a_slot_near_the_end_of_time_stops_nobody_N2():
    make_job("last", Every(days=36500), columns={"next_run_at": at(0), "wake_at": at(0)})
    make_job("healthy")
    engine = make_engine()
    far = T0.replace(year=9999, month=12, day=31)
    assert {one.job.name for one in claim_at(engine, far).runs} == {"last", "healthy"}


def test_an_idle_tick_says_when_the_next_start_is():
    make_job()
    make_job("sooner", Every(seconds=40))
    engine = make_engine()
    assert tick_at(engine, at(1)).wake_at == at(40)


def test_a_tick_of_an_instance_that_was_declared_dead_claims_nothing():
    make_job()
    engine = make_engine()
    engine.instance_id = type(engine)().instance_id
    passed = tick_at(engine, at(60))
    assert not passed.alive
    assert passed.claims.runs == []


def test_a_full_pool_claims_nothing_and_the_slot_stays_due_E2():
    job = make_job()
    engine = make_engine()
    assert tick_at(engine, at(60), capacity=0).claims.runs == []
    run = claim_one(engine, at(64)).run
    assert (run.scheduled_for, run.lateness) == (at(60), timedelta(seconds=4))
    assert ledger(job) == [(at(60), 1, Status.RUNNING)]


def _write_raw(job, values):
    """Write a text that the model refuses, as a hand with SQL would."""
    (column, text), *_ = values.items()
    with connection.cursor() as cursor:
        cursor.execute(f"UPDATE scheduler_job SET {column} = %s WHERE id = %s", [text, job.pk])


def by_update(job, **changes):
    Job.objects.filter(pk=job.pk).update(**changes)


def by_save(job, **changes):
    for column, value in changes.items():
        setattr(job, column, value)
    job.save()


@pytest.mark.parametrize("change", [by_update, by_save])
@pytest.mark.parametrize("seconds", [65, 200], ids=["due", "missed"])
def test_other_policies_leave_no_slot_out_I3(change, seconds):
    """A deploy in the minute of a nightly job must not cost its slot."""
    job, engine = make_job(), make_engine()
    change(job, policy=from_options({"retries": 1}))
    (claimed,) = tick_at(engine, at(seconds)).claims.runs + claim_at(engine, at(seconds)).runs
    assert (claimed.run.coalesced_from or claimed.run.scheduled_for) == at(60)


@pytest.mark.parametrize("change", [by_update, by_save])
@pytest.mark.parametrize("changes", [{"schedule": Every(minutes=1, jitter=5)}, {"enabled": True}])
def test_another_schedule_is_planned_from_then_on(change, changes):
    job, engine = make_job(columns={"enabled": "enabled" not in changes}), make_engine()
    change(job, **changes)
    assert not tick_at(engine, at(65)).claims.runs + claim_at(engine, at(66)).runs


def test_a_claim_ahead_stands_for_the_slots_up_to_its_start_I10():
    """After a backoff; or a pass reads the time, waits for SQLite's lock, and finds a later start."""
    job = make_job(schedule=Every(seconds=1), columns={"wake_at": at(3.1)})
    engine = make_engine()

    (claimed,) = claim_at(engine, at(2.9), ahead=0.25).runs

    assert (claimed.run.scheduled_for, claimed.run.coalesced_from, claimed.run.started_at) == (at(3), at(1), at(3.1))
    finish(engine, claimed, at(3.4))
    job.refresh_from_db()
    assert job.next_run_at == at(4)
