"""The clock was set back: intervals go on, fixed times are not repeated (D6)."""

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from scheduler.engine.control import pause_job, resume_job, update_job
from scheduler.engine.mend import clock_change
from scheduler.engine.mend.clock_change import clock_moved_back
from scheduler.models import Job, RunLog, Status
from scheduler.models.job_columns import to_replan
from scheduler.schedules import Cron, DailyAt, Every, Once, Schedule
from tests.factories import HOUR, T0, at, claim_at, finish, ledger, make_engine, make_job, run_at, tick_at

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


def pause_and_resume(job):
    pause_job(job.name)
    yield
    resume_job(job.name)


def switch_off_and_on(job):
    update_job(job.name, enabled=False)
    yield
    update_job(job.name, enabled=True)


def plan_later(job):
    Job.objects.update(**to_replan())
    yield


@pytest.mark.parametrize("stop", [pause_and_resume, switch_off_and_on, plan_later])
def test_an_interval_that_is_stopped_while_the_clock_is_set_back_goes_on_within_one_interval_D6_I17(stop):
    """Its last slot is from the time of the wrong clock, and a plan begins behind the last slot."""
    job = make_job(schedule=Every(seconds=10))
    engine = make_engine()
    run_at(engine, at(7200))
    stopped = stop(job)
    next(stopped)
    clock_moved_back(engine, at(0))
    next(stopped, None)
    tick_at(engine, at(1))
    job.refresh_from_db()
    assert at(1) < job.next_run_at <= at(11)


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


def test_a_job_that_broke_by_the_wrong_clock_is_brought_back_by_its_probe_I17():
    job, engine = make_job(breaker_threshold=1, breaker_probe_after=60, backoff=None), make_engine()
    run_at(engine, at(hours=1), Status.FAILED)
    clock_moved_back(engine, at(0))
    (probe,) = claim_at(engine, at(minutes=3)).runs
    assert finish(engine, probe, at(minutes=3)).recovered != []
    job.refresh_from_db()
    assert job.broken_at is None


def test_an_orphan_that_keeps_its_plan_does_not_become_due_I13():
    columns = {"orphaned_at": at(1), "wake_at": None}
    job = make_job(schedule=DailyAt(hour=15), planned_at=at(days=30), columns=columns)
    engine = make_engine()
    clock_moved_back(engine, at(2))
    job.refresh_from_db()
    assert (job.next_run_at, job.wake_at) == (at(hours=3), None)
    assert claim_at(engine, at(hours=4)).runs == []


@pytest.mark.parametrize("options", [{}, {"misfire": "skip", "grace": 1}], ids=["caught up", "missed"])
def test_a_slot_that_the_wrong_clock_only_counted_goes_again_I17(options):
    """Else a clock that was wrong for a moment silences the job for as long as it was wrong."""
    job = make_job(schedule=Cron("*/5 * * * *"), **options)
    engine = make_engine()
    run_at(engine, at(minutes=5))
    for claimed in claim_at(engine, at(minutes=122)).runs:
        finish(engine, claimed, at(minutes=122))
    row = job.runs.order_by("-scheduled_for").first()
    assert (row.coalesced_from, row.scheduled_for) == (at(minutes=10), at(minutes=120))
    assert clock_moved_back(engine, at(minutes=6)) == 1
    assert run_at(engine, at(minutes=10)).coalesced == 0


def test_slots_with_a_row_of_their_own_are_stepped_over_I1():
    job = make_job(schedule=Cron("*/5 * * * *"), planned_at=at(minutes=60))
    for minutes in (10, 15, 25):
        RunLog.objects.create(job=job, scheduled_for=at(minutes=minutes))
    RunLog.objects.create(job=job, scheduled_for=at(minutes=17), trigger="manual")
    assert clock_moved_back(make_engine(), at(minutes=6)) == 1
    assert Job.objects.get().next_run_at == at(minutes=20)


class TestCost:
    """However many jobs there are: few queries, short transactions, one look at each schedule whose plan is right."""

    def cost(self, count, monkeypatch):
        for number in range(count):
            make_job(f"daily{number}", DailyAt(hour=3, minute=number % 60))
            make_job(f"every{number}", Every(hours=1))
        looks, real = [], Schedule.next_after
        with monkeypatch.context() as patched, CaptureQueriesContext(connection) as asked:
            patched.setattr(Schedule, "next_after", lambda *args: looks.append(args) or real(*args))
            assert clock_moved_back(make_engine(), at(1)) == 0
        Job.objects.all().delete()
        return len(looks) / count, len(asked)

    def test_right_plans_cost_one_look_each_and_no_further_query(self, monkeypatch, size):
        few, many = self.cost(2, monkeypatch), self.cost(size(80, quick=20), monkeypatch)
        assert few == many
        assert many[0] <= 3

    def test_wrong_plans_are_looked_up_and_written_together(self, monkeypatch):
        found = []
        for count in (2, 80):
            for number in range(count):
                make_job(f"{count} {number}", Cron("* * * * *"), planned_at=at(hours=2))
            with CaptureQueriesContext(connection) as asked:
                assert clock_moved_back(make_engine(), at(1)) == count
            found.append(sum(not query["sql"].startswith(("SAVEPOINT", "RELEASE")) for query in asked))
            Job.objects.all().delete()
        assert found[0] == found[1]

    def test_all_are_repaired_a_few_at_a_time(self, monkeypatch):
        monkeypatch.setattr(clock_change, "JOBS_AT_ONCE", 2)
        for number in range(5):
            make_job(f"job{number}", planned_at=at(hours=2))
        assert clock_moved_back(make_engine(), at(1)) == 5
        assert set(Job.objects.values_list("next_run_at", flat=True)) == {at(61)}

    def test_what_others_change_meanwhile_stays_and_the_rest_is_repaired(self, monkeypatch):
        for name in ("one", "other"):
            make_job(name, planned_at=at(hours=2))
        look = clock_change._first_undecided

        def look_while_another_pauses(*args):
            monkeypatch.setattr(clock_change, "_first_undecided", look)
            Job.objects.filter(name="one").update(paused_at=T0, next_run_at=None, wake_at=None)
            return look(*args)

        monkeypatch.setattr(clock_change, "_first_undecided", look_while_another_pauses)
        assert clock_moved_back(make_engine(), at(1)) == 1
        assert dict(Job.objects.values_list("name", "next_run_at")) == {"one": None, "other": at(61)}


class TestRightPlans:
    """A plan is not wrong because its slot is far."""

    @pytest.mark.parametrize("schedule", [DailyAt(hour=3), Every(hours=1)], ids=str)
    def test_nothing_is_pulled_before_starts_at_I4(self, schedule):
        job = make_job(schedule=schedule, starts_at=at(days=10))
        assert job.next_run_at >= at(days=10)
        assert clock_moved_back(make_engine(), at(1)) == 0

    def test_nothing_is_pulled_before_the_anchor_of_the_schedule_I9(self):
        make_job(schedule=Every(hours=1, anchor=at(days=10)))
        assert clock_moved_back(make_engine(), at(1)) == 0

    @pytest.mark.parametrize("schedule", [Cron("*/5 * * * *"), Every(minutes=5)], ids=str)
    def test_the_probe_of_a_broken_job_stays_I11(self, schedule):
        job = make_job(schedule=schedule, breaker_threshold=1, breaker_probe_after=7200)
        engine = make_engine()
        run_at(engine, at(minutes=5), "failed")
        job.refresh_from_db()
        planned = job.next_run_at
        assert planned > at(minutes=125)
        assert clock_moved_back(engine, at(minutes=5, seconds=1)) == 0
        assert Job.objects.get().next_run_at == planned

    def test_backoff_is_kept_I11(self):
        make_job(backoff=[3600])
        engine = make_engine()
        run_at(engine, at(60), "failed")
        clock_moved_back(engine, at(61))
        assert Job.objects.get().wake_at == at(3660)

    def test_backoff_by_the_wrong_clock_is_counted_from_now_I11(self):
        make_job(backoff=[3600])
        engine = make_engine()
        run_at(engine, at(hours=5), "failed")
        for now in (at(61), at(66)):
            clock_moved_back(engine, now)
            assert Job.objects.get().wake_at == at(61) + HOUR


@pytest.mark.parametrize("schedule", [Once(at(hours=5)), DailyAt(hour=15), Every(hours=1)])
def test_a_plan_that_is_right_stays(schedule):
    job = make_job(schedule=schedule)
    assert clock_moved_back(make_engine(), at(1)) == 0
    assert Job.objects.get().next_run_at == job.next_run_at
