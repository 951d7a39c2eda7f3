"""Priority and the limits of one job: rate, number of runs, first and last instant."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from scheduler.engine.control import backfill, run_now, update_job
from scheduler.engine.release import release_runs
from scheduler.models import Job, Status
from scheduler.schedules import DailyAt, Every, Weekly
from tests.factories import DAY, HOUR, T0, at, claim_at, claim_one, finish, ledger, make_engine, make_job, run_at

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("known", "clock")]


def play(engine, *instants):
    """Run to its end whatever is due at these instants."""
    for now in instants:
        for claimed in claim_at(engine, now).runs:
            finish(engine, claimed, now)


def hours(*numbers):
    return [at(hours=number) for number in numbers]


def test_the_higher_priority_starts_first_when_workers_are_scarce():
    for name, priority in (("low", -5), ("high", 9), ("middle", 0)):
        make_job(name, columns={"priority": priority})
    engine = make_engine()
    order = [claim_at(engine, at(60 + number), limit=1).runs[0].job.name for number in range(3)]
    assert order == ["high", "middle", "low"]


def test_of_equal_priority_the_longest_waiting_starts_first():
    for seconds in (30, 10, 20):
        make_job(f"job{seconds}", Every(seconds=seconds))
    claims = claim_at(make_engine(), at(30), limit=3)
    assert [one.job.name for one in claims.runs] == ["job10", "job20", "job30"]


def test_a_high_priority_does_not_start_before_its_slot_I4():
    make_job("high", columns={"priority": 1000})
    assert claim_at(make_engine(), at(59)).runs == []


def test_a_rate_limit_counts_runs_by_hand_and_every_attempt_but_no_skipped_slot():
    job = make_job(rate_limit="2/10min", retries=1, backoff=None)
    engine = make_engine()
    run_at(engine, at(60), Status.FAILED)
    run_at(engine, at(61))
    assert claim_at(engine, at(120)).runs == []
    assert claim_at(engine, at(600)).runs == []
    job.refresh_from_db()
    assert job.skips == 9
    run_now("job")
    finish(engine, claim_one(engine, at(620)), at(620))
    assert claim_one(engine, at(662)).run.scheduled_for == at(660), "the window has let go of the first two"


def test_a_rate_limit_slides_and_does_not_reset_at_full_hours():
    make_job(schedule=Every(minutes=20), rate_limit="1/h")
    engine = make_engine()
    run_at(engine, at(minutes=20))
    assert claim_at(engine, at(minutes=60)).runs == []
    assert claim_one(engine, at(minutes=80)).run.scheduled_for == at(minutes=80)


class TestRateOfOldSlots:
    """A rate limit counts starts: how old their slots are does not matter."""

    def test_a_slot_of_last_week_that_is_caught_up_counts(self):
        make_job(schedule=Weekly("mon", 13), rate_limit="1/day")
        engine = make_engine()
        run_at(engine, at(days=6, hours=12))
        assert claim_at(engine, at(days=7, hours=1)).runs == []

    def test_backfilled_slots_count(self, clock):
        planned = {"next_run_at": at(days=10), "wake_at": at(days=10)}
        make_job(schedule=Every(hours=1), rate_limit="5/h", columns=planned)
        engine = make_engine()
        clock.set(at(days=10, minutes=-30))
        backfill("job", at(hours=1), at(hours=5))
        for minute in range(5):
            run_at(engine, at(days=10, minutes=minute - 29))
        assert claim_at(engine, at(days=10)).runs == []
        assert len(claim_at(engine, at(days=10, hours=1)).runs) == 1

    def test_a_slot_that_was_put_off_for_days_counts(self):
        make_job(schedule=Every(hours=1), rate_limit="1/50min")
        engine = make_engine()
        run_at(engine, at(hours=1), Status.POSTPONED, postponed_by=50.25 * HOUR)
        play(engine, *hours(*range(2, 52)))
        run_at(engine, at(hours=51.25))
        assert claim_at(engine, at(hours=52)).runs == []
        assert len(claim_at(engine, at(hours=53)).runs) == 1

    def test_a_claim_that_was_given_back_or_skipped_is_no_start(self):
        make_job(schedule=Every(hours=1), rate_limit="1/3h")
        engine = make_engine()
        run_at(engine, at(hours=1), Status.SKIPPED)
        release_runs(engine, [claim_one(engine, at(hours=2))])
        run_at(engine, at(hours=2))
        assert claim_at(engine, at(hours=3)).runs == []

    @pytest.mark.parametrize("status", [Status.SUCCEEDED, Status.SKIPPED])
    def test_one_look_at_the_newest_rows_is_enough_while_slots_start_in_their_time(self, status):
        counts = {}
        for limit in (None, "2/h"):
            Job.objects.all().delete()
            make_job(schedule=Every(hours=1), rate_limit=limit)
            engine = make_engine()
            for hour in range(1, 6):
                run_at(engine, at(hours=hour), status)
            with CaptureQueriesContext(connection) as caught:
                claim_one(engine, at(hours=6))
            counts[limit] = len(caught)
        assert counts["2/h"] == counts[None] + 1


@pytest.mark.parametrize(
    ("options", "started", "last"),
    [
        ({"starts_at": T0 + 3 * DAY}, T0 + 3 * DAY + HOUR, None),
        ({"starts_at": T0 + 3 * DAY + HOUR}, T0 + 3 * DAY + HOUR, None),
        ({"ends_at": T0 + DAY}, T0 + HOUR, T0 + HOUR),
        ({"ends_at": T0 + DAY + HOUR}, T0 + HOUR, T0 + DAY + HOUR),
    ],
    ids=["starts", "starts at a slot", "ends", "ends at a slot"],
)
def test_the_first_and_the_last_slot_are_inside_the_bounds(options, started, last):
    job = make_job(schedule=DailyAt(hour=13), **options)
    engine = make_engine()
    for day in range(6):
        for claimed in claim_at(engine, T0 + day * DAY + 2 * HOUR).runs:
            finish(engine, claimed, T0 + day * DAY + 2 * HOUR)
    slots = [slot for slot, _, _ in ledger(job)]
    job.refresh_from_db()
    assert slots[0] == started
    assert last is None or (slots[-1], job.job_state) == (last, "finished")


def test_counted_from_completion_the_first_slot_is_an_interval_after_starts_at():
    job = make_job(schedule=Every(hours=1, from_completion=True), starts_at=T0 + DAY)
    assert job.next_run_at == T0 + DAY + HOUR


def test_ends_at_bounds_a_catch_up_too():
    job = make_job(schedule=DailyAt(hour=13), ends_at=T0 + DAY)
    run = run_at(make_engine(), T0 + 5 * DAY)
    job.refresh_from_db()
    assert (run.scheduled_for, job.job_state) == (T0 + HOUR, "finished")


def test_max_runs_counts_what_is_going_on_so_that_no_run_is_one_too_many():
    job = make_job(max_runs=2, overlap="allow", max_concurrent=5)
    engine = make_engine()
    claims = [claim_at(engine, at(60 * minute)).runs for minute in (1, 2, 3)]
    assert [len(runs) for runs in claims] == [1, 1, 0]
    for runs in claims[:2]:
        finish(engine, runs[0], at(200))
    job.refresh_from_db()
    assert (job.successes, job.job_state) == (2, "finished")


@pytest.mark.parametrize(
    ("most", "ran"), [(1, [(1, 2)]), (2, [(1, 2), (6, 1)]), (3, [(1, 2), (6, 1), (7, 1)])], ids=str
)
def test_max_runs_counts_a_postponed_slot_however_many_slots_pass_before_its_turn(most, ran):
    job = make_job(schedule=Every(hours=1), max_runs=most)
    engine = make_engine()
    run_at(engine, at(hours=1), Status.POSTPONED, postponed_by=3.5 * HOUR)
    job.refresh_from_db()
    assert job.job_state == "scheduled"
    play(engine, *hours(2, 3, 4, 5, 6, 7, 8))
    rows = [row for row in ledger(job)[1:] if row[2] != Status.SKIPPED]
    assert rows == [(at(hours=hour), attempt, Status.SUCCEEDED) for hour, attempt in ran]


@pytest.mark.parametrize("skipped", [False, True])
def test_max_runs_counts_a_promised_attempt_also_where_the_job_is_planned_anew(skipped):
    job = make_job(schedule=Every(hours=1), max_runs=1)
    engine = make_engine()
    run_at(engine, at(hours=1), Status.POSTPONED, postponed_by=1.5 * HOUR)
    update_job("job", retries=3)
    play(engine, *hours(1.1, 2))
    run_at(engine, at(hours=2.5), Status.SKIPPED if skipped else Status.SUCCEEDED)
    play(engine, *hours(3, 4))
    assert job.runs.filter(status=Status.SUCCEEDED).count() == 1
