"""What a job is expected to do is told as a problem where it does not; no state of a job depends on it."""

from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection

from scheduler import get_job, register
from scheduler.engine.control import pause_group, pause_job, resume_job, update_job
from scheduler.engine.retention.usual import ENOUGH, LEAST_MORE, MEASURED_FOR, forget_deleted, measure_some, slow_after
from scheduler.exceptions import InvalidOption
from scheduler.health import get_scheduler_status
from scheduler.models import Job, JobWatch, RunLog, Status
from scheduler.policy.codec import from_json, from_options, to_json
from scheduler.problems import survey
from scheduler.schedules import AfterJobs, Cron, DailyAt, Every, Manual, OnActivity, Once
from tests.factories import DAY, HOUR, T0, at, claim_one, make_engine, make_job, run_at

pytestmark = pytest.mark.django_db
CODES = ("not_fresh", "deadline_missed", "slower")


@pytest.fixture
def look(clock):
    """Return the codes of unmet expectations at an instant, with their subjects."""
    make_engine()

    def looked(now):
        clock.set(now)
        return [(one.code, one.subject) for one in survey().problems if one.code in CODES]

    return looked


def succeeded(at, **more):
    Job.objects.update(last_success_at=at, **more)


class TestTheOptions:
    @pytest.mark.parametrize("given", ["06:00", "06:00:00"])
    def test_a_time_of_day_is_stored_as_it_is_written(self, given):
        policy = from_options({"succeed_by": given, "fresh": "25h"})
        assert to_json(policy) == '{"fresh":90000.0,"succeed_by":"06:00"}'
        assert from_json(to_json(policy)) == policy

    @pytest.mark.parametrize("wrong", ["6", "25:00", "06:00+02:00", 6, "noon", "T06"])
    def test_what_is_no_time_of_day_is_refused_with_what_to_write(self, wrong):
        with pytest.raises(InvalidOption, match="succeed_by is"):
            from_options({"succeed_by": wrong})

    def test_a_job_is_never_fresh_for_no_time(self):
        with pytest.raises(InvalidOption, match="fresh is 0"):
            from_options({"fresh": 0})

    @pytest.mark.parametrize("option", [{"fresh": "1h"}, {"succeed_by": "06:00"}])
    def test_they_mean_nothing_to_runs_for_users(self, known, option):
        with pytest.raises(InvalidOption, match=next(iter(option))):
            register("summary", schedule=OnActivity(), **option)(lambda user_id, device_id, agent_id: None)


class TestFresh:
    def test_a_job_that_did_not_succeed_in_time_is_told_until_it_does(self, look):
        make_job("sync", Every(hours=24), fresh="25h")
        succeeded(T0)
        assert look(T0 + 25 * HOUR) == []
        assert look(T0 + 26 * HOUR) == [("not_fresh", "sync")]
        (problem,) = [one for one in get_scheduler_status().problems if one.code == "not_fresh"]
        assert problem.text == "sync has not succeeded for 1 d 2 h; it should at least every 1 d 1 h"
        succeeded(T0 + 26 * HOUR)
        assert look(T0 + 26 * HOUR) == []

    def test_one_that_never_succeeded_is_told_so_long_after_it_was_made(self, look):
        make_job("sync", fresh="25h")
        assert (look(T0 + 25 * HOUR), look(T0 + 26 * HOUR)) == ([], [("not_fresh", "sync")])

    def test_health_is_red_and_the_state_of_the_job_is_as_before(self, look):
        make_job("sync", Every(hours=24), fresh="25h")
        Job.objects.update(wake_at=T0 + 100 * HOUR)
        look(T0 + 26 * HOUR)
        assert get_job("sync").view.attention == "not_fresh"
        assert get_scheduler_status().jobs["not_fresh"] == 1
        assert get_job("sync").job_state == "scheduled"

    def test_what_a_person_stopped_is_not_told_and_has_its_time_anew_when_it_goes_on(self, look, known):
        make_job("sync", Manual(), fresh="25h", columns={"group": "night"})
        pause_job("sync")
        assert look(T0 + 26 * HOUR) == []
        resume_job("sync")
        assert look(T0 + 50 * HOUR) == []
        assert look(T0 + 52 * HOUR) == [("not_fresh", "sync")]
        pause_group("night")
        assert look(T0 + 52 * HOUR) == []

    def test_so_is_one_that_is_finished_or_disabled(self, look, known):
        make_job(
            "once", Once(at(60)), fresh="1h", columns={"last_success_at": T0, "wake_at": None, "next_run_at": None}
        )
        make_job("off", Manual(), fresh="1h")
        update_job("off", enabled=False)
        assert look(T0 + DAY) == []

    def test_one_whose_task_is_gone_is_told(self, look):
        make_job("sync", fresh="1h", columns={"orphaned_at": T0})
        assert look(T0 + DAY) == [("not_fresh", "sync")]


def berlin(text):
    return datetime.fromisoformat(text).astimezone(UTC)


class TestTheDeadline:
    NIGHTLY = DailyAt(hour=2, timezone="Europe/Berlin")

    def nightly(self, schedule=NIGHTLY, **columns):
        make_job("etl", schedule, succeed_by="06:00", columns={"created_at": T0 - 30 * DAY, **columns})

    def test_a_success_before_the_deadline_meets_it(self, look):
        self.nightly(last_success_at=berlin("2026-03-03T02:10+01:00"))
        assert look(berlin("2026-03-03T06:01+01:00")) == []
        assert look(berlin("2026-03-04T05:59+01:00")) == []
        assert look(berlin("2026-03-04T06:01+01:00")) == [("deadline_missed", "etl")]
        (problem,) = [one for one in survey().problems if one.code == "deadline_missed"]
        assert problem.text == "etl had not succeeded by 2026-03-04 06:00 CET, and has not since"

    def test_a_late_success_ends_it_and_is_none_for_the_next_day(self, look):
        self.nightly(last_success_at=berlin("2026-03-03T09:00+01:00"))
        assert look(berlin("2026-03-03T10:00+01:00")) == []
        assert look(berlin("2026-03-04T06:01+01:00")) == [("deadline_missed", "etl")]

    def test_it_is_of_the_zone_of_the_job_also_where_the_clock_changes(self, look):
        self.nightly(last_success_at=berlin("2026-03-28T02:10+01:00"))
        assert look(berlin("2026-03-29T05:59+02:00")) == []
        assert look(berlin("2026-03-29T06:00+02:00")) == [("deadline_missed", "etl")]

    def test_a_day_without_a_slot_has_none_and_leaves_that_of_the_day_before_open(self, look):
        self.nightly(Cron("0 2 * * 1-5", timezone="Europe/Berlin"), last_success_at=berlin("2026-03-06T02:10+01:00"))
        assert look(berlin("2026-03-08T12:00+01:00")) == []
        succeeded(berlin("2026-03-05T02:10+01:00"))
        assert look(berlin("2026-03-08T12:00+01:00")) == [("deadline_missed", "etl")]

    def test_a_slot_at_the_deadline_itself_has_a_day(self, look):
        self.nightly(DailyAt(hour=6, timezone="Europe/Berlin"), last_success_at=berlin("2026-03-02T06:10+01:00"))
        assert look(berlin("2026-03-03T06:00+01:00")) == []
        assert look(berlin("2026-03-04T06:00+01:00")) == [("deadline_missed", "etl")]

    def test_of_a_frequent_job_one_success_in_the_day_is_enough(self, look):
        self.nightly(Every(minutes=1), last_success_at=berlin("2026-03-04T05:58+01:00"))
        assert look(berlin("2026-03-04T06:00:30+01:00")) == []

    @pytest.mark.parametrize("schedule", [Manual(), AfterJobs("other")], ids=["manual", "after others"])
    def test_a_job_without_slots_by_time_has_one_each_day(self, look, schedule):
        self.nightly(schedule, last_success_at=datetime(2026, 3, 3, 5, tzinfo=UTC))
        assert look(datetime(2026, 3, 3, 6, 1, tzinfo=UTC)) == []
        assert look(datetime(2026, 3, 4, 6, 1, tzinfo=UTC)) == [("deadline_missed", "etl")]

    def test_a_job_that_was_made_after_the_slot_has_the_next_one(self, look):
        self.nightly(created_at=berlin("2026-03-03T03:00+01:00"))
        assert look(berlin("2026-03-03T07:00+01:00")) == []
        assert look(berlin("2026-03-04T07:00+01:00")) == [("deadline_missed", "etl")]


class TestSlower:
    def ran(self, seconds, count=ENOUGH, job=None):
        """Let runs have succeeded, one an hour, that took so long."""
        job = job or make_job("sync", Every(hours=1), columns={"successes": count})
        first = RunLog.objects.count()
        slots = [T0 + HOUR * number for number in range(first, first + count)]
        length = timedelta(seconds=seconds)
        RunLog.objects.bulk_create(
            RunLog(job=job, scheduled_for=slot, status=Status.SUCCEEDED, started_at=slot, finished_at=slot + length)
            for slot in slots
        )
        Job.objects.filter(pk=job.pk).update(last_run_at=slots[-1], last_finished_at=slots[-1] + length)
        return job

    def test_a_run_over_twice_what_is_usual_is_a_warning_until_the_next_one(self, look):
        job = self.ran(10)
        assert measure_some("default", at(hours=ENOUGH)) == 1
        self.ran(20, 1, job)
        assert look(at(hours=30)) == []
        self.ran(21, 1, job)
        assert look(at(hours=30)) == [("slower", "sync")]
        (problem,) = [one for one in survey().problems if one.code == "slower"]
        assert problem.text == "sync is slower than usual: 21 s, where runs take less than 20 s"
        assert problem.severity == "warning"
        self.ran(9, 1, job)
        assert look(at(hours=30)) == []

    def test_a_living_run_is_told_while_it_lives(self, look):
        job = self.ran(10)
        measure_some("default", at(hours=ENOUGH))
        now = at(hours=40)
        RunLog.objects.create(job=job, scheduled_for=now, status=Status.RUNNING, due_at=now, started_at=now)
        Job.objects.update(active_runs=1)
        assert look(now + timedelta(seconds=20)) == []
        assert look(now + timedelta(seconds=21)) == [("slower", "sync")]

    def test_of_few_runs_nothing_is_usual(self, look):
        self.ran(1, ENOUGH - 1)
        assert measure_some("default", at(hours=ENOUGH)) == 0
        assert slow_after([timedelta(seconds=1)] * (ENOUGH - 1)) is None

    def test_a_moment_more_is_nothing_to_wait_for(self):
        quick = timedelta(milliseconds=3)
        assert slow_after([quick] * ENOUGH) == quick + LEAST_MORE

    def test_one_slow_run_in_twenty_is_not_usual(self):
        assert slow_after([HOUR, *[timedelta(minutes=1)] * 19]) == timedelta(minutes=2)

    def test_a_job_is_measured_again_an_hour_later_if_it_has_run_since(self, look):
        job = self.ran(10)
        later = at(hours=ENOUGH)
        assert [measure_some("default", now) for now in (later, later + MEASURED_FOR)] == [1, 0]
        self.ran(100, 100, job)
        assert measure_some("default", at(hours=200)) == 1
        assert JobWatch.objects.get().slow_after == timedelta(seconds=200)

    def test_what_was_measured_of_a_job_that_is_gone_is_removed(self, look):
        job = self.ran(10)
        measure_some("default", at(hours=ENOUGH))
        assert forget_deleted("default") == 0
        job.delete()
        assert (forget_deleted("default"), JobWatch.objects.count()) == (1, 0)

    @pytest.mark.skipif(connection.vendor != "sqlite", reason="other databases keep no text in such a column")
    def test_a_length_that_cannot_be_read_costs_only_itself(self, look):
        self.ran(10)
        measure_some("default", at(hours=ENOUGH))
        with connection.cursor() as cursor:
            cursor.execute("UPDATE scheduler_jobwatch SET slow_after = 'long'")
        assert look(at(hours=30)) == []
        assert JobWatch.objects.get().slow_after is None


def test_a_run_that_ends_well_meets_what_is_expected_I6(look):
    engine = make_engine()
    make_job("job", Every(hours=1), fresh="2h")
    run_at(engine, at(hours=1))
    assert look(at(hours=2, minutes=59)) == []
    claim_one(engine, at(hours=3))
    assert look(at(hours=3, minutes=1)) == [("not_fresh", "job")]
