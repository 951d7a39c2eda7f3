"""Idle cost, the grid, and the spread of starts (U1-U3), on a clock that is moved."""

from collections import Counter

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from scheduler.engine.retention import prune
from scheduler.models import Job, RunLog
from scheduler.schedules import DailyAt, Every
from tests.factories import T0, at, claim_at, finish, make_engine, make_job
from tests.integration.rules.play import seconds_of

pytestmark = pytest.mark.django_db

HOURLY = 100


class TestIdle:
    """U1: a process with nothing to do looks once per poll and renews its lease."""

    def queries_of_a_minute(self, process):
        """Let every service of the process do its steps for a minute; return its queries."""
        runner = process.runner
        services = [runner.dispatching, runner.recording, runner.beating, runner.monitoring, runner.keeping]
        due = dict.fromkeys(services, 0.0)
        began = process.clock.monotonic()
        with CaptureQueriesContext(connection) as captured:
            while (at_second := min(due.values())) < 60:
                process.clock.advance(at_second - (process.clock.monotonic() - began))
                service = min(due, key=due.get)
                due[service] = at_second + max(service._guarded_step(), 0.001)
        process.clock.advance(60 - (process.clock.monotonic() - began))
        return [query["sql"] for query in captured.captured_queries]

    @pytest.fixture
    def idle(self, start, monkeypatch):
        monkeypatch.setattr(prune, "QUICK_SECONDS", 60.0)  # a slow machine would look at fewer jobs at once
        for number in range(HOURLY):
            make_job(f"job{number}", Every(hours=1))
        process = start()
        process.dispatch()
        return process

    def test_a_hundred_hourly_jobs_cost_what_none_would_U1(self, idle):
        self.queries_of_a_minute(idle)
        queries = self.queries_of_a_minute(idle)
        looks = [sql for sql in queries if "next_job_at" in sql]
        beats = [sql for sql in queries if sql.startswith("UPDATE")]
        assert len(looks) <= 60 / 5
        assert len(beats) <= 60 / 10
        assert len(queries) <= 30, "half of one a second; what is left is the housekeeper's"
        assert not any(service.errors for service in idle.runner.services)

    def test_the_number_of_jobs_does_not_matter_U1(self, idle):
        for _ in range(3):  # what is done once a lease, and by the housekeeper in a round: runs, then events
            self.queries_of_a_minute(idle)
        with_hundred = len(self.queries_of_a_minute(idle))
        Job.objects.all().delete()
        assert abs(len(self.queries_of_a_minute(idle)) - with_hundred) <= 2


class TestGrid:
    """U2: slots lie on anchor + k · interval, whatever the runs take."""

    @pytest.mark.parametrize(
        ("takes", "late", "expected"),
        [
            (3, 0, [10 * number for number in range(1, 101)]),
            (3, 1.7, [10 * number for number in range(1, 101)]),
            (12, 0, [10 + 20 * number for number in range(50)]),
            (25, 0, [10 + 30 * number for number in range(33)]),
        ],
        ids=["short", "found late", "longer than the interval", "much longer"],
    )
    def test_no_drift_over_a_hundred_slots_U2(self, takes, late, expected):
        job = make_job(schedule=Every(seconds=10))
        engine, now = make_engine(), 0.0
        for _ in expected:
            job.refresh_from_db()
            now = max(now, seconds_of(job.wake_at)) + late
            (claimed,) = claim_at(engine, at(now)).runs
            finish(engine, claimed, at(now), after=takes)
            now += takes
        ran = RunLog.objects.filter(status="succeeded").order_by("scheduled_for")
        assert [seconds_of(run.scheduled_for) for run in ran] == expected
        assert all(seconds_of(run.started_at) - seconds_of(run.scheduled_for) <= late + 0.001 for run in ran)

    def test_two_restarts_keep_the_grid_U2(self):
        job = make_job(schedule=Every(seconds=10))
        slots = []
        for restart in (0, 33, 71):
            engine = make_engine(now=at(restart))
            for claimed in claim_at(engine, at(restart + 12)).runs:
                slots.append(seconds_of(claimed.run.scheduled_for))
                finish(engine, claimed, at(restart + 12))
        job.refresh_from_db()
        assert slots == [10, 40, 80]
        assert seconds_of(job.next_run_at) == 90


class TestSpread:
    """U3: jitter spreads the starts of one schedule, by a stable hash of name and slot.

    Without jitter nothing is spread: the first slot of an interval follows from its anchor alone, so that people can
    tell it beforehand. A hundred jobs that are registered together with the same interval are due together.
    """

    @staticmethod
    def starts(jitter, count=100, schedule=None):
        for number in range(count):
            make_job(f"job{number}", schedule or Every(seconds=60, jitter=jitter))
        return {job.name: seconds_of(job.wake_at) for job in Job.objects.all()}

    def test_a_hundred_jobs_of_one_minute_do_not_start_together_U3(self):
        starts = self.starts(60)
        assert all(60 <= second < 120 for second in starts.values())
        assert max(Counter(int(second) for second in starts.values()).values()) <= 8

    def test_the_same_jobs_start_at_the_same_instants_after_a_restart_U3(self):
        before = self.starts(60)
        Job.objects.all().delete()
        assert self.starts(60) == before

    def test_a_start_stays_within_its_jitter_and_does_not_accumulate_U3(self):
        job = make_job(schedule=Every(seconds=60, jitter=30))
        engine, offsets = make_engine(), []
        for slot in range(1, 51):
            job.refresh_from_db()
            assert seconds_of(job.next_run_at) == 60 * slot
            offsets.append(seconds_of(job.wake_at) - 60 * slot)
            (claimed,) = claim_at(engine, job.wake_at).runs
            finish(engine, claimed, job.wake_at)
        assert 0 <= min(offsets) < 5
        assert 25 < max(offsets) <= 30
        assert abs(sum(offsets[:25]) - sum(offsets[25:])) < 25 * 15

    @pytest.mark.parametrize("schedule", [DailyAt(hour=13), Every(seconds=60)], ids=["daily", "every"])
    def test_without_jitter_nothing_is_shifted_U3(self, schedule):
        starts = set(self.starts(0, schedule=schedule).values())
        assert starts == {seconds_of(schedule.bind(anchor=T0, timezone="UTC").next_after(T0))}
