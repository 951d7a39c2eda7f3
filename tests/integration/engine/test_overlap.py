"""Slots that come while a run of their job lives, by overlap policy."""

from datetime import timedelta

import pytest

from scheduler.engine.finish import finish_runs
from scheduler.models import RunLog, Status, Trigger
from scheduler.schedules import Every
from tests.costs import quick
from tests.factories import at, claim_at, claim_one, ended, finish, ledger, make_engine, make_job, run_at

pytestmark = pytest.mark.django_db


def test_skip_never_starts_a_second_run_and_records_the_passed_slots_in_one_row_F1_I2():
    job = make_job()
    engine = make_engine()
    claimed = claim_one(engine, at(60))
    assert claim_at(make_engine(), at(130)).runs == []
    (row,) = finish(engine, claimed, at(60), after=250).skipped
    assert (row.status, row.scheduled_for, row.coalesced, row.coalesced_from) == (Status.SKIPPED, at(300), 3, at(120))
    assert "overlap" in row.reason
    job.refresh_from_db()
    assert (job.skips, job.next_run_at, job.wake_at) == (4, at(360), at(360))


def test_ten_thousand_passed_slots_cost_one_row_and_no_time_F1():
    job = make_job(schedule=Every(seconds=1))
    engine = make_engine()
    claimed = claim_one(engine, at(1))
    with quick(0.2):
        finish(engine, claimed, at(1), after=10_000)
    job.refresh_from_db()
    assert job.skips == 10_000
    assert len(ledger(job)) == 2


def test_a_single_passed_slot_is_a_row_of_its_own():
    make_job()
    engine = make_engine()
    (row,) = finish(engine, claim_one(engine, at(60)), at(60), after=61).skipped
    assert (row.scheduled_for, row.coalesced, row.coalesced_from) == (at(120), 0, None)


def test_queue_one_lets_one_run_follow_at_once():
    job = make_job(overlap="queue_one")
    engine = make_engine()
    claimed = claim_one(engine, at(60))
    assert claim_at(engine, at(200)).runs == []
    finish(engine, claimed, at(60), after=250)
    follower = claim_one(engine, at(310)).run
    assert (follower.scheduled_for, follower.trigger) == (at(300), Trigger.SCHEDULE)
    assert (follower.coalesced, follower.coalesced_from) == (3, at(120))
    assert claim_at(engine, at(311)).runs == []
    job.refresh_from_db()
    assert job.skips == 0


def test_queue_one_has_nothing_to_queue_when_no_slot_passed():
    make_job(overlap="queue_one")
    engine = make_engine()
    run_at(engine, at(60), after=5)
    assert claim_at(engine, at(66)).runs == []


def test_allow_runs_side_by_side_up_to_its_limit_I2():
    job = make_job(overlap="allow", max_concurrent=2)
    engine = make_engine()
    first, second = claim_one(engine, at(60)), claim_one(engine, at(120))
    assert claim_at(engine, at(180)).runs == []
    finish_runs(engine, [ended(first, at(190))])
    third = claim_one(engine, at(240)).run
    assert third.scheduled_for == at(240)
    job.refresh_from_db()
    assert job.active_runs == 2
    assert second.run.status == Status.RUNNING


def test_a_run_from_completion_is_planned_by_its_end():
    job = make_job(schedule=Every(minutes=10, from_completion=True))
    engine = make_engine()
    finish(engine, claim_one(engine, at(600)), at(600), after=33)
    job.refresh_from_db()
    assert job.next_run_at == at(600 + 33 + 600)
    assert job.skips == 0


@pytest.mark.parametrize("status", [Status.FAILED, Status.POSTPONED], ids=["retry", "postponed"])
def test_a_job_from_completion_is_counted_from_the_end_of_the_last_attempt_and_skips_nothing(status):
    job = make_job(schedule=Every(minutes=5, from_completion=True), retries=1, backoff=[30])
    engine = make_engine()
    run_at(engine, at(300), status, postponed_by=timedelta(seconds=30))
    run_at(engine, at(330), after=400)
    job.refresh_from_db()
    assert (job.next_run_at, job.skips) == (at(730 + 300), 0)
    assert [line[2] for line in ledger(job)] == [status, Status.SUCCEEDED]


def test_a_run_by_hand_counts_as_the_completion_that_a_job_is_counted_from():
    job, engine = make_job(schedule=Every(minutes=5, from_completion=True)), make_engine()
    RunLog.objects.create(job=job, scheduled_for=at(100), trigger="manual", due_at=at(100))
    run_at(engine, at(100), after=50)
    job.refresh_from_db()
    assert job.next_run_at == at(450)


def test_a_task_longer_than_its_interval_starts_on_the_grid_U2():
    make_job(schedule=Every(seconds=10))
    engine = make_engine()
    starts = []
    for _ in range(5):
        now = at(10 if not starts else starts[-1] + 20)
        starts.append(int((claim_one_and_end(engine, now) - at(0)).total_seconds()))
    assert starts == [10, 30, 50, 70, 90]


def claim_one_and_end(engine, now):
    claimed = claim_one(engine, now)
    finish(engine, claimed, now, after=12)
    return claimed.run.scheduled_for
