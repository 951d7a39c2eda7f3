"""Backfill: runs for slots of the past, one by one, oldest first."""

from datetime import timedelta

import pytest

from scheduler.engine.control import backfill, cancel_run, reset_job, run_now, update_job
from scheduler.engine.release import release_runs
from scheduler.engine.retention.keep import Retention
from scheduler.engine.retention.prune import prune
from scheduler.exceptions import InvalidOption, Refused
from scheduler.models import RunLog, Status, Trigger
from scheduler.registry import register
from scheduler.schedules import Every, Manual
from tests.factories import (
    HOUR,
    MINUTE,
    at,
    claim_at,
    claim_one,
    finish,
    ledger,
    make_engine,
    make_job,
    run_at,
    tick_at,
)

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
    job.__class__.objects.filter(pk=job.pk).update(next_run_at=at(hours=8), wake_at=at(hours=8))
    clock.set(at(hours=7, minutes=30))
    return job


@pytest.fixture
def engine(job):
    return make_engine(now=at(hours=7, minutes=30))


def planned(slot):
    """The columns of a job that is planned for a slot, and has missed none before."""
    return {"next_run_at": slot, "wake_at": slot}


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
    make_job("fast", Every(seconds=1), columns={"next_run_at": at(5001), "wake_at": at(5001)})
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
    assert (job.consecutive_failures, job.wake_at) == (before, at(hours=8))


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


def test_a_link_that_is_put_off_keeps_its_turn_and_the_chain_single(clock):
    make_job(schedule=Every(hours=1), overlap="allow", max_concurrent=5, columns=planned(at(hours=9)))
    engine, now = make_engine(), at(hours=8, minutes=1)
    clock.set(now)
    backfill("job", at(hours=1), at(hours=8))
    finish(engine, claim_one(engine, now), now, Status.POSTPONED, postponed_by=at(600) - at(0))
    assert claim_at(engine, now).runs == []
    for hour in (1, 2):
        claimed = claim_one(engine, at(hours=8, minutes=11))
        assert hours_of([claimed.run]) == [hour]
        finish(engine, claimed, at(hours=8, minutes=11))
    assert in_flight() == 1


def test_a_link_that_is_put_off_and_then_cancelled_lets_the_next_one_go(job, engine):
    backfill("job", at(hours=1), at(hours=7))
    now = at(hours=7, minutes=30)
    finish(engine, claim_one(engine, now), now, Status.POSTPONED, postponed_by=HOUR)
    cancel_run(RunLog.objects.get(due_at__isnull=False).pk)
    assert hours_of([claim_one(engine, now).run]) == [5]


@pytest.mark.parametrize("overlap", ["queue_one", "replace"])
def test_slots_of_the_job_and_the_links_take_turns(clock, overlap):
    """Each lasts 90 s, and a slot comes every minute: none of the two keeps the other from starting for ever."""
    make_job(overlap=overlap, columns=planned(at(minutes=61)))
    engine, now, order = make_engine(), at(minutes=60, seconds=50), []
    clock.set(now)
    backfill("job", at(minutes=1), at(minutes=10))
    for _ in range(6):
        (claimed,) = tick_at(engine, now).claims.runs
        order.append(claimed.run.trigger)
        tick_at(engine, now + MINUTE)
        now += timedelta(seconds=90)
        finish(engine, claimed, now)
    assert order == [Trigger.BACKFILL, Trigger.SCHEDULE] * 3


@pytest.mark.parametrize("when", ["while it runs", "while it waits"])
def test_the_chain_goes_on_when_the_row_of_a_link_is_deleted_I17(job, engine, when):
    """By a statement in SQL, say. It ended nowhere, so that all the others waited for ever, later ones too."""
    rows = backfill("job", at(hours=1), at(hours=3), only="all")
    if when == "while it runs":
        claimed = claim_one(engine, at(hours=7, minutes=31))
        RunLog.objects.filter(pk=claimed.run.pk).delete()
        finish(engine, claimed, at(hours=7, minutes=32))
        reset_job("job")  # the sweep would, too: it counts a run that has no row
    else:
        RunLog.objects.filter(pk=rows[0].pk).delete()
        assert backfill("job", at(hours=2), at(hours=3), only="missing") == [], "they wait already"
    claimed = claim_one(engine, at(hours=7, minutes=33))
    assert claimed.run.scheduled_for == at(hours=2)
    assert claim_at(engine, at(hours=7, minutes=33)).runs == [], "one by one"


def test_an_interval_that_is_disabled_has_no_grid_and_so_no_slots_of_the_past(clock):
    make_job(schedule=Every(hours=1))
    make_job("anchored", Every(hours=1, anchor=at(0)))
    clock.set(at(hours=7))
    for name in ("job", "anchored"):
        update_job(name, enabled=False)
    assert backfill("job", at(hours=1), at(hours=3), only="all") == []
    assert hours_of(backfill("anchored", at(hours=1), at(hours=3), only="all")) == [1, 2, 3]


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


@pytest.mark.parametrize("schedule", [Manual(), Every(hours=1, from_completion=True)], ids=["manual", "no grid"])
def test_a_job_without_slots_of_the_past_has_nothing_to_backfill(clock, schedule):
    make_job(schedule=schedule, planned_at=at(hours=8))
    clock.set(at(hours=8))
    assert backfill("job", at(hours=1), at(hours=5), only="all") == []


class TestAfterRetention:
    """A daily job of twelve days; of what succeeded nine days are kept, of what failed eighteen."""

    KEPT = Retention(days=9, failed_days=18, runs=10_000)

    @pytest.fixture
    def engine(self, clock):
        make_job(schedule=Every(days=1), backoff=None, retries=1)
        return make_engine()

    def live(self, engine, failed=(), postponed=(), days=range(1, 13)):
        for day in days:
            if day in postponed:
                run_at(engine, at(days=day), Status.POSTPONED, postponed_by=HOUR)
            if day in failed:
                run_at(engine, at(days=day), Status.FAILED)
            run_at(engine, at(days=day, hours=1))

    @staticmethod
    def prune(engine, clock, *, days=12, retention=KEPT):
        clock.set(at(days=days, hours=2))
        assert prune(engine, clock.now(), retention=retention).total > 0

    @staticmethod
    def offered(only="missing"):
        return [row.scheduled_for for row in backfill("job", at(days=1), at(days=12), only=only, dry_run=True)]

    @pytest.mark.parametrize(
        "lived", [{"failed": [2]}, {"postponed": range(1, 13)}], ids=["an old failure", "postponed first"]
    )
    @pytest.mark.parametrize("only", ["missing", "failed"])
    def test_what_succeeded_does_not_run_again_whatever_is_left_of_it_I12(self, engine, clock, lived, only):
        self.live(engine, **lived)
        self.prune(engine, clock)
        assert self.offered(only) == []

    def test_an_old_slot_that_was_run_again_lately_tells_nothing_about_its_neighbours_I12(self, engine, clock):
        self.live(engine)
        clock.set(at(days=12, hours=2))
        backfill("job", at(days=2), at(days=2), only="all")
        run_at(engine, clock.now())
        self.prune(engine, clock)
        assert self.offered() == []

    def test_a_skip_whose_later_success_is_gone_does_not_run_again_I12(self, engine, clock):
        run_at(engine, at(days=1), Status.SKIPPED)
        clock.set(at(days=1, hours=1))
        backfill("job", at(days=1), at(days=1))
        run_at(engine, clock.now())
        self.live(engine, days=range(2, 13))
        self.prune(engine, clock, retention=Retention(days=0, failed_days=0, runs=5))
        assert ledger()[0] == (at(days=1), 1, Status.SKIPPED)
        assert self.offered() == []

    def test_what_the_ledger_says_never_ran_runs_although_an_old_failure_is_gone(self, engine, clock):
        self.live(engine, failed=[1])
        self.live(engine, days=[16])  # and 13 to 15 are counted on it
        self.live(engine, days=[17, 18, 19])
        self.live(engine, days=[20], failed=[20])
        self.prune(engine, clock, days=20)
        assert backfill("job", at(days=1), at(days=12), dry_run=True) == []
        rows = backfill("job", at(days=1), at(days=20), dry_run=True)
        assert [row.scheduled_for for row in rows] == [at(days=day) for day in (13, 14, 15)]

    @pytest.mark.parametrize(("only", "count"), [("missing", 0), ("failed", 0), ("all", 12)])
    def test_where_every_row_is_gone_only_all_runs_its_slots_again_I12(self, engine, clock, only, count):
        self.live(engine)
        RunLog.objects.all().delete()
        clock.set(at(days=12, hours=2))
        assert len(self.offered(only)) == count


def test_the_moment_that_an_interval_is_counted_from_is_no_slot(clock):
    later = {"next_run_at": at(hours=4), "wake_at": at(hours=4), "last_slot": None}
    make_job("hourly", Every(hours=1), columns=later)
    clock.set(at(hours=3, minutes=30))
    found = [run.scheduled_for for run in backfill("hourly", at(0), at(hours=9), dry_run=True)]
    assert found == [at(hours=1), at(hours=2), at(hours=3)]
