"""The clock was set back: intervals go on, fixed times are not repeated (D6)."""

from datetime import timedelta

import pytest

from scheduler.engine.clockstep import clock_moved_back
from scheduler.models import Job
from scheduler.schedules import Cron, DailyAt, Every, Once
from tests.factories import HOUR, at, claim_at, ledger, make_engine, make_job, run_at

pytestmark = pytest.mark.django_db


def test_an_interval_goes_on_within_one_interval_D6_I9():
    job = make_job(schedule=Every(seconds=10))
    engine = make_engine()
    run_at(engine, at(10))
    back = at(10) - HOUR
    assert clock_moved_back(engine, back) == 1
    run = run_at(engine, back + timedelta(seconds=10))
    assert run.scheduled_for == back + timedelta(seconds=10)
    job.refresh_from_db()
    assert job.next_run_at == back + timedelta(seconds=20)


def test_a_fixed_time_that_was_run_is_not_run_again_D6():
    job = make_job(schedule=DailyAt(hour=12, minute=30))
    engine = make_engine()
    run_at(engine, at(minutes=30))
    clock_moved_back(engine, at(minutes=40) - HOUR)
    assert claim_at(engine, at(minutes=31)).runs == []
    job.refresh_from_db()
    assert job.next_run_at == at(days=1, minutes=30)
    assert len(ledger(job)) == 1


def test_a_fixed_time_skipped_by_a_wrong_clock_is_not_lost():
    job = make_job(schedule=DailyAt(hour=15), planned_at=at(days=30))
    engine = make_engine()
    assert clock_moved_back(engine, at(0)) == 1
    job.refresh_from_db()
    assert job.next_run_at == at(hours=3)


def test_a_frequent_cron_takes_its_first_slot_that_the_ledger_has_not_decided_I1():
    job = make_job(schedule=Cron("*/10 * * * *"))
    engine = make_engine()
    for minute in (10, 20, 30):
        run_at(engine, at(minutes=minute))
    clock_moved_back(engine, at(minutes=15))
    job.refresh_from_db()
    assert job.next_run_at == at(minutes=40)
    assert len(ledger(job)) == 3


def test_an_orphan_that_keeps_its_plan_does_not_become_due_I13():
    columns = {"orphaned_at": at(1), "next_start_at": None}
    job = make_job(schedule=DailyAt(hour=15), planned_at=at(days=30), columns=columns)
    engine = make_engine()
    clock_moved_back(engine, at(2))
    job.refresh_from_db()
    assert (job.next_run_at, job.next_start_at) == (at(hours=3), None)
    assert claim_at(engine, at(hours=4)).runs == []


@pytest.mark.parametrize("schedule", [Once(at(hours=5)), DailyAt(hour=15), Every(hours=1)])
def test_a_plan_that_is_right_stays(schedule):
    job = make_job(schedule=schedule)
    assert clock_moved_back(make_engine(), at(1)) == 0
    assert Job.objects.get().next_run_at == job.next_run_at
