"""Attempts that were promised by a clock that was set back since: none waits longer than it was meant to (D6)."""

import pytest
from django.db import connection

from scheduler.engine.control import backfill, run_now
from scheduler.engine.mend.clock_change import clock_moved_back
from scheduler.engine.release import release_runs
from scheduler.engine.rescue import close_as_lost
from scheduler.models import Job, RunLog, Status
from scheduler.schedules import DailyAt, Every, Manual
from tests.factories import HOUR, MINUTE, T0, at, claim_at, claim_one, finish, make_engine, make_job, run_at

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("known", "clock")]

WRONG = at(hours=2)
"""What the clock says until it is set back to T0."""


@pytest.fixture
def engine():
    return make_engine()


@pytest.fixture
def daily():
    return lambda **options: make_job(schedule=DailyAt(hour=14), **options)


def due_after(engine, *instants):
    """Set the clock back, look as often as there are instants, and return when the promised attempt is due."""
    for now in instants or (at(10), at(15)):
        clock_moved_back(engine, now)
    return RunLog.objects.waiting().get().due_at


def test_the_retry_of_a_run_by_hand_waits_no_longer_than_its_backoff_I11(engine, clock):
    make_job(schedule=Manual(), retries=1, backoff=[300])
    clock.set(WRONG)
    run_now("job")
    run_at(engine, WRONG, Status.FAILED)
    assert due_after(engine) == at(310)


def test_a_postponed_slot_waits_as_long_as_it_asked_for(engine, daily):
    daily()
    run_at(engine, WRONG, Status.POSTPONED, postponed_by=5 * MINUTE)
    assert due_after(engine) == at(10) + 5 * MINUTE


def test_a_postponement_that_is_longer_than_the_step_is_not_cut_short(engine, daily):
    daily()
    run_at(engine, WRONG, Status.POSTPONED, postponed_by=3 * HOUR)
    assert due_after(engine, WRONG - MINUTE, WRONG - MINUTE / 2) == WRONG + 3 * HOUR


def test_a_postponement_by_the_right_clock_stays(engine):
    make_job()
    run_at(engine, at(60), Status.POSTPONED, postponed_by=HOUR)
    assert due_after(engine, at(61), at(66)) == at(60) + HOUR


def test_a_retry_waits_no_longer_than_its_backoff_I11(engine, daily):
    daily(retries=1, backoff=[300])
    run_at(engine, WRONG, Status.FAILED)
    assert due_after(engine) == at(310)


def test_a_retry_that_was_postponed_waits_as_long_as_it_asked_for(engine, daily):
    daily(retries=1, backoff=[1])
    run_at(engine, WRONG, Status.FAILED)
    run_at(engine, WRONG + MINUTE, Status.POSTPONED, postponed_by=5 * MINUTE)
    assert due_after(engine) == at(310)


def test_a_lost_slot_is_tried_again_at_once(engine, daily):
    daily()
    claimed = claim_one(engine, WRONG)
    close_as_lost(engine, [claimed.run], WRONG, "its process died")
    assert due_after(engine) == at(10)


def test_a_run_by_hand_starts_at_once(engine, clock, daily):
    daily()
    clock.set(WRONG - MINUTE)
    run = run_now("job")
    assert due_after(engine) == at(10)
    assert claim_one(engine, at(15)).run.pk == run.pk


@pytest.mark.parametrize("only", ["missing", "failed"])
def test_a_backfill_goes_on_at_once_and_slot_by_slot(engine, clock, only):
    make_job(schedule=Every(minutes=30), columns={"created_at": T0 - HOUR})
    Job.objects.update(anchor_at=T0 - HOUR, next_run_at=at(days=1), wake_at=at(days=1))
    if only == "failed":
        for slot in (T0 - HOUR / 2, T0):
            RunLog.objects.create(job=Job.objects.get(), scheduled_for=slot, status=Status.FAILED, finished_at=T0)
    clock.set(WRONG)
    backfill("job", T0 - HOUR / 2, T0, only=only)
    assert due_after(engine) == at(10)
    assert claim_one(engine, at(15)).run.scheduled_for == T0 - HOUR / 2
    assert RunLog.objects.get(status=Status.PENDING).due_at is None


def test_a_claim_that_was_given_back_before_it_began_waits_for_its_slot_I4(engine):
    make_job(schedule=Every(hours=1), overlap="allow", max_concurrent=2)
    other = make_engine()
    claimed = claim_one(engine, at(hours=1, minutes=5))
    claim_one(other, at(hours=2))
    release_runs(engine, [claimed])
    assert due_after(engine) == at(hours=1)


def test_many_are_moved_with_one_statement(engine, django_assert_max_num_queries):
    for number in range(30):
        make_job(f"job{number}", DailyAt(hour=14), retries=1, backoff=[300])
    for claimed in claim_at(engine, WRONG).runs:
        finish(engine, claimed, WRONG, Status.FAILED)
    with django_assert_max_num_queries(24):
        clock_moved_back(engine, at(10))
    assert set(RunLog.objects.waiting().values_list("due_at", flat=True)) == {at(310)}


def test_an_attempt_whose_policies_cannot_be_read_stops_no_other(engine, daily):
    for name in ("bad", "good"):
        make_job(name, DailyAt(hour=14), retries=1, backoff=[300])
    for claimed in claim_at(engine, WRONG).runs:
        finish(engine, claimed, WRONG, Status.FAILED)
    with connection.cursor() as cursor:
        cursor.execute("UPDATE scheduler_job SET policy = 'nonsense' WHERE name = 'bad'")
    clock_moved_back(engine, at(10))
    assert RunLog.objects.waiting().get(job__name="good").due_at == at(310)
