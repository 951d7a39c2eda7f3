"""Saying what holds already changes no plan, and forgets no slot."""

import pytest

from scheduler.engine.control import pause_job, reset_job, resume_job, update_job
from scheduler.models import Status
from scheduler.schedules import DailyAt, Every
from tests.factories import T0, at, claim_one, finish, ledger, make_engine, make_job, tick_at

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("known", "clock")]

SAYS_WHAT_HOLDS = {
    "same schedule": lambda: update_job("job", schedule=DailyAt(13)),
    "same schedule as text": lambda: update_job("job", schedule="daily at 13:00", description="as each deploy says"),
    "enabled already": lambda: update_job("job", enabled=True),
    "same option": lambda: update_job("job", retries=0),
    "reset, and not broken": lambda: reset_job("job"),
    "resumed, and not paused": lambda: resume_job("job"),
}


@pytest.mark.parametrize("say", SAYS_WHAT_HOLDS.values(), ids=SAYS_WHAT_HOLDS)
def test_what_changes_nothing_forgets_no_slot_that_is_due_I3(clock, say):
    job, engine = make_job(schedule=DailyAt(13)), make_engine()
    clock.set(at(hours=1, minutes=5))  # nothing was alive at 13:00
    say()
    tick_at(engine, at(hours=1, minutes=5))
    tick_at(engine, at(hours=1, minutes=6))
    assert ledger(job) == [(at(hours=1), 1, Status.RUNNING)]


def test_the_same_schedule_again_forgets_no_slot_that_passed_during_a_run_I3(clock):
    job, engine = make_job(), make_engine()
    held = claim_one(engine, at(60))
    clock.set(at(200))
    update_job("job", schedule=Every(minutes=1))
    tick_at(engine, at(201))
    finish(engine, held, at(60), after=145)
    assert [slot for slot, *_ in ledger(job)] == [at(60), at(180)]  # 120 and 180, skipped, on one row


def test_a_reset_forgets_no_slot_since_the_end_of_a_pause_that_nobody_saw_I3(clock):
    job, engine = make_job(schedule=DailyAt(14)), make_engine()
    pause_job("job", until=at(hours=1))
    clock.set(at(hours=2, minutes=1))
    reset_job("job")
    tick_at(engine, at(hours=2, minutes=1))
    tick_at(engine, at(hours=2, minutes=2))
    assert ledger(job) == [(at(hours=2), 1, Status.RUNNING)]


def test_the_same_schedule_again_resets_a_broken_job():
    make_job(schedule=DailyAt(13), columns={"broken_at": T0, "consecutive_failures": 5, "next_start_at": None})
    assert update_job("job", schedule=DailyAt(13)).broken_at is None


def test_the_same_value_is_an_override_all_the_same():
    make_job(schedule=DailyAt(13), columns={"source": "app.tasks"})
    assert update_job("job", schedule=DailyAt(13)).overridden_fields == ["schedule"]
