"""N4: what was found green while nothing ran is red, by name, and everywhere the same."""

import json
import os
import sqlite3
from contextlib import closing
from io import StringIO
from time import monotonic  # noqa: TID251
from types import SimpleNamespace

import pytest
from django.core.management import CommandError, call_command
from django.db import OperationalError, connection, connections
from django.test.utils import CaptureQueriesContext
from django.utils.translation import override

from scheduler.engine.control import pause_group, reset_job, run_now
from scheduler.engine.db import migrated
from scheduler.engine.db.migrated import why_read_only
from scheduler.engine.views.failing import failing_jobs
from scheduler.exceptions import ActivityStoreUnavailable
from scheduler.health import get_scheduler_status
from scheduler.models import Instance, Job, RunLog, Status, Trigger
from scheduler.problems import SEVERITIES, Problem, process, survey
from scheduler.problems.base import WORDS
from scheduler.problems.jobs import NAMED, counted
from scheduler.registry import registry
from scheduler.runtime import current
from scheduler.schedules import AfterJobs, Cron, Every, Manual, Monthly, OnActivity
from tests.factories import T0, at, finish, make_engine, make_job, run_at, tick_at
from tests.integration.conftest import FILE_ALIAS

pytestmark = pytest.mark.django_db


@pytest.fixture
def lives(clock):
    """One instance that looks for due jobs, and does so now."""
    return make_engine()


def found(code=None):
    """Return code and subject of each problem."""
    return [(one.code, one.subject) for one in survey().problems if code in (None, one.code)]


def test_what_is_counted_once_for_all_follows_the_clock_and_the_default_group(lives, settings):
    make_job("job", columns={"wake_at": at(0), "next_run_at": at(0), "stale": False})
    assert [counted(at(seconds))["overdue"] for seconds in (30, 90, 30)] == [0, 1, 0]
    pause_group("serial")
    for group, paused in (("serial", 1), ("", 0), ("serial", 1)):
        settings.SCHEDULER_DEFAULT_GROUP = group
        assert (counted(at(90))["paused"], counted(at(90))["overdue"]) == (paused, 1 - paused)


def test_every_kind_of_problem_has_words_and_a_severity():
    assert SEVERITIES.keys() == WORDS.keys()


class TestModules:
    @pytest.fixture
    def fails(self, monkeypatch):
        monkeypatch.setitem(registry.failures, "shop.tasks", "ModuleNotFoundError: No module named 'nope'")

    def test_a_module_that_cannot_be_imported_is_red_also_before_it_ever_had_a_job(self, lives, fails):
        status = get_scheduler_status()
        assert [one.to_dict() for one in status.problems] == [
            {
                "code": "module_failed",
                "severity": "degraded",
                "subject": "shop.tasks",
                "text": "the tasks of shop.tasks are not available: ModuleNotFoundError: No module named 'nope'",
            }
        ]
        assert status.status == "degraded"

    def test_the_orphans_it_caused_are_named_and_others_are_a_warning(self, lives, fails):
        gone = {"orphaned_at": T0, "wake_at": None}
        make_job("cleanup", columns=gone | {"source": "shop.tasks"})
        make_job("retired", columns=gone | {"source": "old.tasks"})
        assert found() == [("module_failed", "shop.tasks"), ("orphaned_by_module", "cleanup"), ("orphaned", "retired")]

    def test_an_orphan_alone_is_listed_and_health_stays_green(self, lives):
        make_job("retired", columns={"orphaned_at": T0, "wake_at": None})
        status = get_scheduler_status()
        assert ([one.severity for one in status.problems], status.status) == (["warning"], "ok")


class TestAFailingJob:
    """Its last final outcome is a failure. Daily and rarer kinds tell of the first one."""

    def fail(self, engine, *seconds, **more):
        for one in seconds:
            run_at(engine, at(one), Status.FAILED, **more)

    @pytest.mark.parametrize(
        "schedule", [Cron("0 13 * * *"), Monthly(day=2, hour=13), Every(hours=24)], ids=["nightly", "monthly", "day"]
    )
    def test_the_first_failure_of_a_daily_or_rarer_job_is_told(self, lives, schedule):
        make_job("night", schedule)
        Job.objects.update(wake_at=at(60))
        self.fail(lives, 60)
        assert found("failing") == [("failing", "night")]

    def test_of_a_frequent_job_the_third_failure_in_a_row_is(self, lives):
        make_job("often", backoff=[1])
        told = []
        for seconds in (60, 120, 180):
            self.fail(lives, seconds)
            told.append(found("failing"))
        assert told == [[], [], [("failing", "often")]]
        run_at(lives, at(240))
        assert found("failing") == []

    def test_an_attempt_that_another_one_follows_is_no_final_outcome(self, lives):
        make_job("night", Every(hours=24), retries=1, backoff=[1])
        Job.objects.update(wake_at=at(60))
        self.fail(lives, 60)
        assert found("failing") == []
        self.fail(lives, 70)
        assert found("failing") == [("failing", "night")]

    def test_a_job_that_follows_others_tells_of_its_first_failure(self, lives):
        make_job("load", AfterJobs("extract"), columns={"consecutive_failures": 1, "last_status": Status.FAILED})
        assert found("failing") == [("failing", "load")]

    def test_that_a_run_for_a_user_failed_says_nothing_of_its_job(self, lives):
        make_job("summary", OnActivity(interval=60), columns={"last_status": Status.LOST})
        assert found("failing") == []

    def for_users(self, *outcomes):
        """Let runs for users have ended so, one a minute: the key of the user, and the status."""
        job = make_job("summary", OnActivity(interval=60), columns={"last_status": outcomes[-1][1]})
        RunLog.objects.bulk_create(
            RunLog(
                job=job, scheduled_for=at(minutes=minute), trigger=Trigger.ACTIVITY, actor=user, status=status,
                started_at=at(minutes=minute), finished_at=at(minutes=minute),
            )
            for minute, (user, status) in enumerate(outcomes)
        )  # fmt: skip

    FAILED = (("ann", Status.FAILED), ("ben", Status.LOST))

    def test_a_job_whose_runs_fail_for_every_user_is_told_of_the_fifth(self, lives):
        self.for_users(("ann", Status.SUCCEEDED), *self.FAILED, *self.FAILED, ("ann", Status.TIMED_OUT))
        assert found("failing") == [("failing", "summary")]
        assert "5 failures in a row" in str(survey().problems[0])

    def test_so_is_one_that_has_a_single_user(self, lives):
        self.for_users(*[("ann", Status.FAILED)] * 5)
        assert found("failing") == [("failing", "summary")]

    @pytest.mark.parametrize(
        "outcomes",
        [
            [*FAILED, *FAILED],
            [*FAILED, *FAILED, ("cid", Status.SUCCEEDED), *FAILED],
            [("ben", Status.SUCCEEDED), *[("ann", Status.FAILED)] * 9],
            [*FAILED, *FAILED, ("ann", Status.PENDING), ("ann", Status.CANCELLED)],
        ],
        ids=["four", "a success among them", "of one user of two", "no final outcomes"],
    )
    def test_fewer_failures_for_users_are_theirs(self, lives, outcomes):
        self.for_users(*outcomes)
        Job.objects.update(last_status=Status.FAILED)
        assert found("failing") == []

    def test_jobs_that_follow_users_are_looked_at_only_when_their_last_run_failed(self, lives):
        self.for_users(*[("ann", Status.FAILED)] * 5)
        Job.objects.update(last_status=Status.SUCCEEDED)
        with CaptureQueriesContext(connection) as queries:
            assert failing_jobs(at(0)) == []
        assert len(queries) == 1

    def by_hand(self, engine, seconds, status=Status.FAILED, name="job"):
        run_now(name)
        return run_at(engine, at(seconds), status)

    @pytest.mark.parametrize("schedule", [Manual(), Every(hours=24)], ids=["manual", "daily"])
    def test_a_run_by_hand_that_failed_is_told_of_a_manual_and_of_a_daily_job(self, lives, known, schedule):
        make_job("job", schedule)
        self.by_hand(lives, 1)
        assert found("failing") == [("failing", "job")]
        assert str(survey().problems[0]).endswith("“failed”, 1 failure")
        self.by_hand(lives, 2, Status.SUCCEEDED)
        assert found("failing") == []

    def test_a_run_by_hand_that_failed_is_one_of_three_for_a_frequent_job(self, lives, known):
        make_job("job")
        self.by_hand(lives, 1)
        assert found("failing") == []

    def test_a_reset_ends_what_the_plan_failed(self, lives, known):
        make_job("job", Every(hours=24))
        Job.objects.update(wake_at=at(60))
        self.fail(lives, 60)
        reset_job("job")
        assert found("failing") == []

    @pytest.mark.parametrize("status", [Status.FAILED, Status.TIMED_OUT])
    def test_a_reset_ends_what_failed_by_hand_until_that_fails_again(self, lives, known, clock, status):
        make_job("job", Every(hours=24))
        self.by_hand(lives, 1, status)
        assert found("failing") == [("failing", "job")]
        clock.set(at(2))
        reset_job("job")
        assert found("failing") == []
        clock.set(at(3))
        self.by_hand(lives, 3, Status.FAILED)
        assert found("failing") == [("failing", "job")]

    def test_what_a_person_stopped_is_not_told(self, lives):
        columns = {"consecutive_failures": 9, "last_status": Status.FAILED}
        make_job("paused", Every(hours=24), columns=columns | {"paused_at": T0})
        make_job("off", Every(hours=24), columns=columns | {"enabled": False, "wake_at": None})
        assert found("failing") == []


class TestCounters:
    def test_a_counter_without_living_rows_is_told_and_a_right_one_is_not(self, lives):
        make_job("right")
        make_job("wrong")
        claims = tick_at(lives, at(60)).claims
        RunLog.objects.filter(job__name="wrong").delete()
        (one,) = [one for one in survey().problems if one.code == "miscounted"]
        assert (one.subject, one.values) == ("wrong", {"active": 1, "living": 0})
        finish(lives, next(claimed for claimed in claims.runs if claimed.job.name == "right"), at(61))
        assert found("miscounted") == [("miscounted", "wrong")]


class TestThisProcess:
    @pytest.fixture
    def runs(self, start, monkeypatch):
        process = start()
        process.dispatch()
        monkeypatch.setattr(current, "current", lambda: process.runner)
        monkeypatch.setattr(type(process.runner), "is_running", lambda runner: True)
        return process

    def codes(self):
        dead = {"service_dead"}  # the threads of this process are stepped by the test
        return [(one.code, one.subject) for one in survey().problems if one.code not in dead]

    def test_a_thread_that_fails_each_round_is_told_and_one_that_went_on_is_not(self, runs):
        service = runs.runner.recording
        service._step = lambda: 1 / 0
        for _ in range(process.FAILED_ROUNDS):
            assert self.codes() == []
            service._guarded_step()
        (one,) = [one for one in survey().problems if one.code == "service_failing"]
        assert (one.subject, one.values) == ("recorder", {"rounds": 4, "error": "ZeroDivisionError: division by zero"})
        assert get_scheduler_status().here["failing"] == {"recorder": 4}
        service._step = lambda: 0.0
        service._guarded_step()
        assert self.codes() == []

    def test_every_claim_that_fails_is_told_within_seconds(self, runs, monkeypatch):
        def fail(*_args, **_options):
            raise OperationalError("could not serialize")

        monkeypatch.setattr("scheduler.engine.tick.claim_due", fail)
        make_job("due", columns={"wake_at": at(1)})
        runs.go_to(at(1))
        waits = [runs.runner.dispatching._guarded_step() for _ in range(process.FAILED_ROUNDS)]
        assert self.codes() == [("service_failing", "dispatcher")]
        assert sum(waits) < 5

    def test_every_other_process_knows_with_the_next_heartbeat(self, runs, monkeypatch):
        runs.runner.dispatching._step = lambda: 1 / 0
        for _ in range(process.FAILED_ROUNDS):
            runs.runner.dispatching._guarded_step()
        runs.go_to(at(10))
        assert self.codes() == [("service_failing", "dispatcher")]
        monkeypatch.setattr(current, "current", lambda: None)
        (one,) = survey().problems
        assert (one.code, one.subject) == ("instance_failing", runs.engine.name)
        assert one.values == {"error": "dispatcher: ZeroDivisionError: division by zero"}
        runs.runner.recording._step = lambda: [][0]
        for _ in range(process.FAILED_ROUNDS):
            runs.runner.recording._guarded_step()
        runs.go_to(at(15))
        assert [one.values["error"].partition(":")[0] for one in survey().problems] == ["recorder", "dispatcher"]
        runs.runner.recording._step = lambda: 0.0
        runs.runner.recording._guarded_step()
        runs.runner.dispatching._step = lambda: 0.0
        runs.runner.dispatching._guarded_step()
        runs.go_to(at(20))
        assert found() == []

    def test_a_process_that_runs_and_is_not_in_the_table_is_told(self, runs):
        assert self.codes() == []
        Instance.objects.all().delete()
        assert ("not_registered", "this process") in self.codes()

    def test_so_is_one_that_never_came_to_join(self, start, monkeypatch):
        process = start()
        monkeypatch.setattr(current, "current", lambda: process.runner)
        monkeypatch.setattr(type(process.runner), "is_running", lambda runner: True)
        assert self.codes() == []
        process.clock.advance(61)
        assert self.codes() == [("not_registered", "this process")]


class TestTheStoreOfActivities:
    @pytest.fixture
    def store(self, known, settings, monkeypatch):
        settings.SCHEDULER_ACTIVITY_STORE = "redis://:secret@nowhere/0"
        store = SimpleNamespace(set_aside=lambda jobs: {job.name: 0 for job in jobs})
        monkeypatch.setattr(process, "chosen_store", lambda using: store)
        return store

    def fails(self, jobs):
        raise ActivityStoreUnavailable("ConnectionError: it is away")

    def test_one_that_is_away_is_red_since_no_run_for_a_user_starts(self, lives, known, store):
        from scheduler.registry import register

        register("summary", schedule=OnActivity(interval=60))(lambda user_id, device_id, agent_id: True)
        assert found() == []
        store.set_aside = self.fails
        assert found() == [("activity_store_away", "")]
        assert get_scheduler_status().status == "degraded"

    def test_entries_that_were_put_aside_are_counted_and_yellow(self, lives, known, store):
        from scheduler.registry import register

        register("summary", schedule=OnActivity(interval=60))(lambda user_id, device_id, agent_id: True)
        store.set_aside = lambda jobs: {job.name: 2 for job in jobs}
        (problem,) = get_scheduler_status().problems
        told = (problem.code, str(problem.severity), problem.text)
        assert told == (
            "activity_unreadable", "warning", "2 entries of users of summary could not be read and are put aside"
        )  # fmt: skip

    def test_a_project_without_such_tasks_does_not_ask_it(self, lives, store):
        store.set_aside = self.fails
        assert found("activity_store_away") == []


class TestAReadOnlyDatabase:
    @pytest.fixture
    def read_only(self, file_database):
        with connections[FILE_ALIAS].cursor() as cursor:
            cursor.execute("PRAGMA query_only = 1")

    def test_it_is_red_also_with_empty_tables(self, read_only):
        assert not Job.objects.exists()
        assert found() == [("read_only", "")]
        assert get_scheduler_status().status == "degraded"

    def test_one_that_takes_writes_is_not_and_keeps_none(self, file_database):
        assert why_read_only(FILE_ALIAS) == ""
        assert found() == []

    def test_one_that_another_process_writes_to_is_not_waited_for_AP10(self, file_database, tmp_path):
        get_scheduler_status()
        with closing(sqlite3.connect(tmp_path / "db.sqlite3", isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            with CaptureQueriesContext(connections[FILE_ALIAS]) as queries:
                began = monotonic()
                assert found() == []
                assert monotonic() - began < 5
        assert any(query["sql"].startswith("UPDATE") for query in queries)

    def test_where_somebody_has_just_written_nobody_asks(self, lives, monkeypatch):
        monkeypatch.setattr(process, "why_read_only", lambda using: pytest.fail("asked"))
        assert found() == []

    @pytest.mark.parametrize(
        ("message", "is_it"),
        [
            ("cannot execute UPDATE in a read-only transaction", True),
            ("The MariaDB server is running with the --read-only option so it cannot execute this statement", True),
            ("attempt to write a readonly database", True),
            ("database is locked", False),
        ],
    )
    def test_only_what_says_so_counts(self, message, is_it):
        assert bool(migrated.READ_ONLY.search(message)) is is_it


class TestTheListIsBounded:
    def test_of_many_alike_some_are_named_and_the_others_counted(self, lives):
        for number in range(NAMED + 5):
            make_job(f"job{number:02}", columns={"broken_at": T0, "wake_at": None, "consecutive_failures": 5})
        problems = survey().problems
        assert len(problems) == NAMED + 1
        assert (problems[0].text, problems[-1].text) == (
            "job00 is broken: 5 failures in a row",
            "5 more jobs of the kind “broken”",
        )

    @pytest.mark.parametrize("further", [1, 2])
    def test_one_job_more_than_are_named_is_told_as_well_and_breaks_no_surface(self, lives, further):
        for number in range(NAMED + further):
            make_job(f"job{number:02}", columns={"broken_at": T0, "wake_at": None, "consecutive_failures": 5})
        told = f"{further} more job{'s' if further > 1 else ''} of the kind “broken”"
        assert survey().problems[-1].to_dict() == {
            "code": "broken",
            "severity": "degraded",
            "subject": "",
            "text": told,
        }
        with override("de"):
            assert f"{further} weitere" in survey().problems[-1].said()

    def test_its_queries_do_not_grow_with_the_jobs(self, lives, django_assert_max_num_queries):
        for number in range(30):
            columns = {"problem": "?"} if number % 2 else {"broken_at": T0}
            make_job(f"job{number}", columns=columns | {"wake_at": None})
        with django_assert_max_num_queries(10):
            survey()


class TestEverySurface:
    """Health, both commands and the banner read one list."""

    @pytest.fixture
    def broken(self, lives):
        make_job("sync", columns={"broken_at": T0, "wake_at": None, "consecutive_failures": 5})
        make_job("retired", columns={"orphaned_at": T0, "wake_at": None})

    def test_scheduler_health_lists_them_and_fails_for_the_grave_ones(self, broken):
        out = StringIO()
        with pytest.raises(CommandError, match=r"^The scheduler is degraded\.$"):
            call_command("scheduler_health", stdout=out)
        assert "  - degraded: sync is broken: 5 failures in a row\n" in out.getvalue()
        Job.objects.filter(name="sync").delete()
        out = StringIO()
        call_command("scheduler_health", stdout=out)
        assert out.getvalue() == "ok\n  - warning: retired is orphaned: no live process has its task\n"

    def test_the_status_of_task_schedule_lists_them(self, broken):
        out = StringIO()
        call_command("task_schedule", "--status", stdout=out)
        assert "  - degraded: sync is broken: 5 failures in a row\n" in out.getvalue()
        out = StringIO()
        call_command("task_schedule", "--status", "--json", stdout=out)
        assert [one["subject"] for one in json.loads(out.getvalue())["problems"]] == ["sync", "retired"]

    def test_the_words_are_english_for_machines_whatever_the_language(self, broken, settings):
        settings.LANGUAGE_CODE = "de"
        assert str(Problem("no_instance")) == "no live instance runs the scheduler"


def test_a_message_that_is_quoted_is_one_short_line(lives):
    make_job("bad", columns={"problem": "x\n" * 100_000, "wake_at": None})
    (text,) = [one.text for one in survey().problems]
    assert len(text) < 400
    assert os.linesep not in text
