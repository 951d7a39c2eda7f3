"""Slots found late, through real rows: after a restart, an outage, a suspend, a jump of the clock."""

from datetime import UTC, datetime, timedelta

import pytest

from scheduler.models import Status, Trigger
from scheduler.schedules import DailyAt, Every
from tests.costs import quick
from tests.factories import (
    DAY,
    HOUR,
    MINUTE,
    T0,
    at,
    claim_at,
    claim_one,
    finish,
    ledger,
    make_engine,
    make_job,
    run_at,
)

pytestmark = pytest.mark.django_db

TEN_YEARS = datetime(2036, 3, 2, 12, 0, tzinfo=UTC)


def test_down_ten_minutes_gives_one_catch_up_that_counts_the_others_E1_I10():
    job = make_job()
    engine = make_engine()
    run = claim_one(engine, at(minutes=10, seconds=30)).run
    assert run.trigger == Trigger.CATCH_UP
    assert (run.scheduled_for, run.coalesced, run.coalesced_from) == (at(minutes=10), 9, at(minutes=1))
    job.refresh_from_db()
    assert job.next_run_at == at(minutes=11), "the next one is in the future, on the old grid"
    assert claim_at(engine, at(minutes=10, seconds=31)).runs == []


def test_policy_skip_records_the_missed_slots_and_runs_only_what_is_not_too_late_E1():
    job = make_job(misfire="skip", grace=10)
    engine = make_engine()
    claims = claim_at(engine, at(minutes=10, seconds=30))
    assert claims.runs == []
    (missed,) = claims.not_run
    assert (missed.scheduled_for, missed.coalesced, missed.coalesced_from) == (at(minutes=10), 9, at(minutes=1))
    job.refresh_from_db()
    assert (job.misses, job.next_run_at) == (10, at(minutes=11))
    assert claim_one(engine, at(minutes=11)).run.trigger == Trigger.SCHEDULE


def test_policy_run_all_runs_the_newest_slots_oldest_first_and_writes_off_the_rest():
    job = make_job(misfire="run_all", max_catch_up=3)
    engine = make_engine()
    late = at(minutes=10, seconds=30)
    for _ in range(3):
        finish(engine, claim_one(engine, late), late)
    assert ledger(job) == [
        (at(minutes=7), 1, Status.MISSED),
        (at(minutes=8), 1, Status.SUCCEEDED),
        (at(minutes=9), 1, Status.SUCCEEDED),
        (at(minutes=10), 1, Status.SUCCEEDED),
    ]
    job.refresh_from_db()
    assert job.misses == 7
    assert claim_at(engine, late).runs == []


def test_fifty_jobs_make_fifty_catch_ups_never_more_at_once_than_asked_for_E1():
    for number in range(50):
        make_job(f"job{number}")
    engine = make_engine()
    late = at(minutes=10, seconds=30)
    batches = [len(claim_at(engine, late, limit=8).runs) for _ in range(8)]
    assert batches == [8, 8, 8, 8, 8, 8, 2, 0]


def test_down_exactly_at_the_due_minute_runs_at_the_first_tick_after_and_once_E3():
    job = make_job(schedule=DailyAt(hour=15))
    engine = make_engine()
    started = at(hours=3, minutes=3)
    run = run_at(engine, started)
    assert (run.scheduled_for, run.lateness) == (at(hours=3), 3 * MINUTE)
    assert claim_at(make_engine(), started + MINUTE).runs == []
    assert len(ledger(job)) == 1


@pytest.mark.parametrize(
    ("schedule", "late", "trigger"),
    [
        (Every(minutes=1), 59, Trigger.SCHEDULE),
        (Every(hours=1), 3599, Trigger.SCHEDULE),
        (Every(seconds=10), 9, Trigger.SCHEDULE),
        (DailyAt(hour=15), 23 * 3600, Trigger.SCHEDULE),
        (DailyAt(hour=15), 47 * 3600, Trigger.CATCH_UP),
    ],
)
def test_the_default_grace_is_generous_E2(schedule, late, trigger):
    job = make_job(schedule=schedule)
    run = claim_one(make_engine(), job.next_run_at + timedelta(seconds=late)).run
    assert run.trigger == trigger


def test_a_jump_of_ten_years_costs_one_run_and_no_time_D7():
    job = make_job(schedule=Every(seconds=1))
    engine = make_engine()
    with quick(0.2):
        run = claim_one(engine, TEN_YEARS).run
    assert run.coalesced == (TEN_YEARS - T0) // timedelta(seconds=1) - 1
    assert run.coalesced == pytest.approx(3.16e8, rel=0.01)
    job.refresh_from_db()
    assert job.next_run_at == TEN_YEARS + timedelta(seconds=1)


def test_a_boot_in_1970_and_then_the_right_time_makes_one_catch_up_D7():
    epoch = datetime(1970, 1, 1, 0, 0, 5, tzinfo=UTC)
    make_job(schedule=Every(seconds=1), planned_at=epoch)
    engine = make_engine(now=epoch)
    finish(engine, claim_one(engine, epoch + timedelta(seconds=1)), epoch + timedelta(seconds=1))
    assert claim_one(engine, T0).run.coalesced > 1.7e9


def test_a_new_job_does_not_run_before_its_first_slot():
    make_job(schedule=DailyAt(hour=11))
    assert claim_at(make_engine(), T0 + HOUR).runs == []


def test_a_window_bounds_how_old_a_catch_up_may_be():
    job = make_job(schedule=DailyAt(hour=15), grace="1h", catch_up_window="6h")
    engine = make_engine()
    claims = claim_at(engine, at(hours=3) + 7 * HOUR)
    assert claims.runs == []
    assert [row.status for row in claims.not_run] == [Status.MISSED]
    job.refresh_from_db()
    assert job.next_run_at == at(hours=3) + DAY


def rows_of(job):
    rows = job.runs.order_by("scheduled_for").values_list("scheduled_for", "status", "coalesced", "reason")
    return [(round((slot - T0).total_seconds()), *more) for slot, *more in rows]


def play(engine, *instants):
    """At each instant, run whatever is due at once."""
    for now in instants:
        for claimed in claim_at(engine, now).runs:
            finish(engine, claimed, now)


def each_run(*slots):
    return [(slot, "succeeded", 0, "") for slot in slots]


@pytest.mark.parametrize(
    ("misfire", "rows"),
    [
        ("run_latest", [(300, "succeeded", 3, "")]),
        ("skip", [(300, "succeeded", 3, "")]),
        ("run_all", each_run(120, 180, 240, 300)),
    ],
)
def test_slots_that_waited_for_the_run_before_are_not_late(misfire, rows):
    job, engine = make_job(overlap="queue_one", misfire=misfire), make_engine()
    finish(engine, claim_one(engine, at(60)), at(60), after=270)
    play(engine, *(at(330 + n) for n in range(5)))
    assert rows_of(job) == each_run(60) + rows


@pytest.mark.parametrize(
    ("misfire", "rows"),
    [
        ("run_latest", [(360, "succeeded", 4, "")]),
        ("skip", [(360, "succeeded", 4, "")]),
        ("run_all", each_run(120, 180, 240, 300, 360)),
    ],
)
def test_slots_that_waited_for_the_backoff_are_not_late(misfire, rows):
    job, engine = make_job(backoff=300, misfire=misfire), make_engine()
    finish(engine, claim_one(engine, at(60)), at(60), Status.FAILED, after=1)
    play(engine, *(at(361 + n) for n in range(6)))
    assert rows_of(job) == [(60, "failed", 0, ""), *rows]


def test_run_all_runs_no_more_of_what_waited_than_its_bound_and_says_so():
    job, engine = make_job(backoff=300, misfire="run_all", max_catch_up=2), make_engine()
    finish(engine, claim_one(engine, at(60)), at(60), Status.FAILED, after=1)
    play(engine, *(at(361 + n) for n in range(6)))
    reason = "more slots waited than max_catch_up lets run"
    assert rows_of(job) == [(60, "failed", 0, ""), (240, "missed", 2, reason), *each_run(300, 360)]


def test_policy_skip_counts_slots_found_within_their_grace_on_the_newest():
    job, engine = make_job(grace="1h", misfire="skip"), make_engine()
    play(engine, at(305))
    assert rows_of(job) == [(300, "succeeded", 4, "")]


def test_policy_skip_writes_off_only_the_slots_that_are_later_than_their_grace():
    job, engine = make_job(grace=150, misfire="skip"), make_engine()
    play(engine, at(305))
    assert rows_of(job) == [(120, "missed", 1, "found later than its grace"), (300, "succeeded", 2, "")]
    job.refresh_from_db()
    assert job.misses == 2


def test_run_all_runs_a_slot_within_its_grace_whatever_the_window():
    make_job(schedule=DailyAt(hour=13), misfire="run_all", catch_up_window="6h")  # its grace is a day
    claims = claim_at(make_engine(), at(days=1, hours=8))
    assert [claimed.run.scheduled_for for claimed in claims.runs] == [at(days=1, hours=1)]
    assert [row.scheduled_for for row in claims.not_run] == [at(hours=1)]


@pytest.mark.parametrize("misfire", ["run_latest", "run_all"])
def test_a_window_of_nothing_catches_nothing_up(misfire):
    make_job(schedule=DailyAt(hour=13), misfire=misfire, grace="1m", catch_up_window=0)
    claims = claim_at(make_engine(), at(hours=5))
    assert (claims.runs, [row.status for row in claims.not_run]) == ([], [Status.MISSED])


def test_every_slot_ends_as_exactly_one_of_run_skip_or_miss_I3_I12():
    """Three days of an hourly job under every policy, looked at irregularly: nothing is lost, nothing is double."""
    for policy in ("run_latest", "skip", "run_all"):
        job = make_job(policy, Every(hours=1), misfire=policy, grace="10m", max_catch_up=2)
        engine = make_engine()
        now = T0
        for gap in (1.0, 1.2, 5.0, 0.1, 9.0, 0.5, 30.0, 1.0):
            now += gap * HOUR
            while runs := claim_at(engine, now).runs:
                finish(engine, runs[0], now)
        rows = job.runs.all()
        accounted = sum(1 + row.coalesced for row in rows)
        job.refresh_from_db()
        assert accounted == (job.next_run_at - T0) // HOUR - 1, policy
        assert len({row.scheduled_for for row in rows}) == len(rows)
        assert job.successes == sum(row.status == Status.SUCCEEDED for row in rows)
        assert job.misses == sum(1 + row.coalesced for row in rows if row.status == Status.MISSED)
