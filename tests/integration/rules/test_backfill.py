"""Backfill: runs for slots of the past, one by one, oldest first."""

import pytest

from scheduler.engine.control import backfill, cancel_run, run_now
from scheduler.engine.release import release_runs
from scheduler.exceptions import InvalidOption, Refused
from scheduler.models import RunLog, Status, Trigger
from scheduler.registry import register
from scheduler.schedules import Every, Manual
from tests.factories import HOUR, at, claim_at, claim_one, finish, ledger, make_engine, make_job, run_at

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("known")]

DONE = Status.SUCCEEDED


@pytest.fixture
def job(clock):
    """An hourly job: slot 1 succeeded, 2 failed, 3 was cancelled, 4 was skipped, 5 and 6 are counted on 7."""
    job = make_job(schedule=Every(hours=1), backoff=None)
    engine = make_engine()
    for hour, status in enumerate((DONE, Status.FAILED, Status.CANCELLED), 1):
        run_at(engine, at(hours=hour), status)
    RunLog.objects.create(job=job, scheduled_for=at(hours=4), status=Status.SKIPPED)
    RunLog.objects.create(
        job=job,
        scheduled_for=at(hours=7),
        status=DONE,
        coalesced=2,
        coalesced_from=at(hours=5),
    )
    job.__class__.objects.filter(pk=job.pk).update(next_run_at=at(hours=8), next_start_at=at(hours=8))
    clock.set(at(hours=7, minutes=30))
    return job


@pytest.fixture
def engine(job):
    return make_engine(now=at(hours=7, minutes=30))


def hours_of(rows):
    return [(row.scheduled_for - at(0)) / HOUR for row in rows]


@pytest.mark.parametrize(("only", "hours"), [("missing", [4, 5, 6]), ("failed", [2]), ("all", [1, 2, 3, 4, 5, 6, 7])])
def test_only_says_which_slots(job, only, hours):
    rows = backfill("job", at(hours=1), at(hours=9), only=only, actor="ann")
    assert hours_of(rows) == hours
    assert {(row.trigger, row.status, row.actor) for row in rows} == {(Trigger.BACKFILL, Status.PENDING, "ann")}
    assert {row.attempt for row in rows} <= {1, 2}
    assert RunLog.objects.filter(trigger="backfill").count() == len(hours)


def test_a_dry_run_writes_nothing(job):
    before = ledger()
    assert hours_of(backfill("job", at(hours=1), at(hours=7), dry_run=True)) == [4, 5, 6]
    assert ledger() == before


def test_slots_to_come_and_slots_twice_are_left_alone(job):
    backfill("job", at(hours=1), at(hours=99))
    assert backfill("job", at(hours=1), at(hours=99)) == []


@pytest.mark.parametrize("wrong", ["missed", ""])
def test_a_wrong_choice_is_refused(job, wrong):
    with pytest.raises(InvalidOption, match="'missing', 'failed' or 'all'"):
        backfill("job", at(0), at(hours=9), only=wrong)


def test_more_than_a_thousand_slots_are_refused_and_nothing_is_written(clock):
    make_job("fast", Every(seconds=1), columns={"next_run_at": at(5001), "next_start_at": at(5001)})
    clock.set(at(5000))
    with pytest.raises(InvalidOption, match="1000"):
        backfill("fast", at(1), at(1001))
    assert ledger() == []
    assert len(backfill("fast", at(1), at(1000), dry_run=True)) == 1000


def test_a_closed_gate_and_a_gone_task_are_refused(job, known):
    known.remove("task")
    with pytest.raises(Refused) as caught:
        backfill("job", at(0), at(hours=7))
    assert caught.value.code == "not_registered"
    register("task", gate=lambda: "no licence")(lambda: None)
    with pytest.raises(Refused, match="no licence"):
        backfill("job", at(0), at(hours=7))


def test_they_run_one_by_one_oldest_first_each_after_the_end_of_the_one_before(job, engine):
    backfill("job", at(hours=1), at(hours=7))
    now, done = at(hours=7, minutes=30), []
    for _ in range(3):
        claimed = claim_one(engine, now)
        assert claim_at(engine, now).runs == []
        done.append(claimed.run)
        finish(engine, claimed, now)
    assert hours_of(done) == [4, 5, 6]
    assert claim_at(engine, now).runs == []
    job.refresh_from_db()
    assert (job.next_run_at, job.skips) == (at(hours=8), 0)


def in_flight():
    return RunLog.objects.filter(trigger="backfill", due_at__isnull=False).count()


@pytest.mark.parametrize("status", [Status.FAILED, Status.LOST, Status.TIMED_OUT, Status.CANCELLED])
def test_the_chain_goes_on_whatever_becomes_of_a_link(job, engine, status):
    backfill("job", at(hours=1), at(hours=7))
    now = at(hours=7, minutes=30)
    finish(engine, claim_one(engine, now), now, status, in_doubt=True)
    assert in_flight() == 1
    assert hours_of([claim_one(engine, now).run]) == [5]


def test_a_failed_link_does_not_count_for_backoff_and_breaker(job, engine):
    job.refresh_from_db()
    before = job.consecutive_failures
    backfill("job", at(hours=1), at(hours=7))
    now = at(hours=7, minutes=30)
    finish(engine, claim_one(engine, now), now, Status.FAILED)
    job.refresh_from_db()
    assert (job.consecutive_failures, job.next_start_at) == (before, at(hours=8))


@pytest.mark.parametrize("which", [0, 1, 2], ids=["the next", "a later one", "the last"])
def test_cancelling_one_that_waits_keeps_the_chain_single(job, engine, which):
    rows = backfill("job", at(hours=1), at(hours=7))
    cancel_run(rows[which].pk)
    now, done = at(hours=7, minutes=30), []
    for _ in range(2):
        assert in_flight() == 1
        claimed = claim_one(engine, now)
        done.append(claimed.run)
        finish(engine, claimed, now)
    assert hours_of(done) == [hour for number, hour in enumerate([4, 5, 6]) if number != which]


def test_a_second_backfill_joins_the_chain(job, engine):
    backfill("job", at(hours=6), at(hours=7))
    now = at(hours=7, minutes=30)
    claimed = claim_one(engine, now)
    backfill("job", at(hours=1), at(hours=7))
    assert in_flight() == 1, "the one that runs, and nothing beside it"
    finish(engine, claimed, now)
    assert in_flight() == 1
    assert hours_of([claim_one(engine, now).run]) == [4]


def test_given_back_at_a_stop_it_is_promised_again(job, engine):
    backfill("job", at(hours=1), at(hours=7))
    now = at(hours=7, minutes=30)
    release_runs(engine, [claim_one(engine, now)])
    assert in_flight() == 1
    assert hours_of([claim_one(engine, now).run]) == [4]


def test_a_run_by_hand_does_not_wait_for_the_whole_backfill(job, engine):
    backfill("job", at(hours=1), at(hours=7))
    run_now("job")
    triggers = []
    for minute in (31, 32):
        claimed = claim_one(engine, at(hours=7, minutes=minute))
        triggers.append(claimed.run.trigger)
        finish(engine, claimed, at(hours=7, minutes=minute))
    assert set(triggers) == {"manual", "backfill"}


def test_a_job_without_slots_has_nothing_to_backfill(clock):
    make_job("manual", Manual())
    assert backfill("manual", at(-9), at(0)) == []
