"""Runs for users leave a worker to the plan, in every process. I15."""

from datetime import timedelta

import pytest

from scheduler.engine.claim_ahead import Room
from scheduler.engine.db.bulk import insert_runs
from scheduler.engine.tick import tick
from scheduler.models import RunLog, Trigger
from scheduler.schedules import OnActivity
from tests.factories import at, ledger, make_engine, make_job

pytestmark = pytest.mark.django_db

MANY = 100


@pytest.fixture
def engine():
    return make_engine("task", "visit", "beside")


def wait_for_users(count, task="visit"):
    """Promise runs for users, as the drainer does."""
    job = make_job(task, OnActivity(60), task=task, overlap="allow", max_concurrent=MANY)
    rows = [
        RunLog.of(job, scheduled_for=at(number), trigger=Trigger.ACTIVITY, kwargs={}, actor=str(number), due_at=at(0))
        for number in range(count)
    ]
    insert_runs(job._state.db, rows)


def names(engine, *, capacity=MANY, room=None):
    """Return the jobs of the runs that one pass claims."""
    passed = tick(engine, at(60), ahead=timedelta(0), capacity=capacity, room=room)
    return sorted(claimed.job.name for claimed in passed.claims.runs)


def test_without_a_bound_they_have_what_is_free(engine):
    wait_for_users(5)
    assert names(engine) == ["visit"] * 5


def test_no_more_are_claimed_than_there_is_room_for_I15(engine):
    wait_for_users(5)
    make_job("plan")
    assert names(engine, room=Room(3)) == ["plan", "visit", "visit", "visit"]
    assert names(engine, room=Room(0)) == []


def test_those_that_wait_for_room_keep_no_other_attempt_waiting_I15(engine):
    wait_for_users(5)
    other = make_job("retried", planned_at=None)
    run = RunLog.of(other, scheduled_for=at(30), trigger=Trigger.MANUAL, kwargs={}, due_at=at(50))
    insert_runs(other._state.db, [run])
    assert "retried" in names(engine, capacity=2, room=Room(0))


def test_those_on_the_event_loop_need_no_room(engine):
    wait_for_users(2, "beside")
    wait_for_users(2)
    assert names(engine, room=Room(0, beside=frozenset({"beside"}))) == ["beside", "beside"]


def test_in_a_pool_of_one_they_come_when_nothing_else_is_due(engine):
    wait_for_users(2)
    make_job("plan")
    alone = Room(1, after_plan=True)
    assert names(engine, capacity=1, room=alone) == ["plan"]
    assert names(engine, room=alone) == ["visit"], "and one at a time"
    assert len(ledger()) == 3
