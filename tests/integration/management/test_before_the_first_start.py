"""What the code registers is there before the scheduler has started once, and disabled jobs tell what they would do."""

import json
from datetime import timedelta
from io import StringIO

import pytest
from django.core.management import call_command
from django.db import DatabaseError

from scheduler import apps
from scheduler.engine.base import Engine
from scheduler.engine.control import get_job, list_jobs, update_job
from scheduler.engine.db.shared_time import shared_now
from scheduler.engine.instances import leave
from scheduler.engine.sync import follow_code
from scheduler.exceptions import InvalidOption
from scheduler.models import Environment, Job
from scheduler.registry import register, registry
from scheduler.schedules import DailyAt
from tests.factories import make_engine, make_job

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def nightly():
    register("nightly", schedule=DailyAt(hour=3))(lambda: 42)
    yield
    registry.remove("nightly")


def command(*arguments):
    out = StringIO()
    call_command(*arguments, stdout=out, stderr=StringIO())
    return out.getvalue()


def migrated(**more):
    """Send what `migrate` sends when it is done."""
    apps._make_jobs(**{"using": "default", "plan": []} | more)
    return set(Job.objects.values_list("name", flat=True))


class TestMigrate:
    def test_it_makes_the_jobs_of_registered_tasks_and_leaves_their_plan_to_the_first_tick(self):
        assert "nightly" in migrated()
        assert Job.objects.get(name="nightly").stale
        before = list(Job.objects.values_list("pk", "version"))
        migrated()
        assert list(Job.objects.values_list("pk", "version")) == before, "once more changes nothing"

    def test_a_flush_makes_none(self):
        apps._make_jobs(using="default")
        assert not Job.objects.exists()

    def test_another_database_than_that_of_the_jobs_gets_none(self):
        assert migrated(using="other") == set()

    def test_it_never_fails_because_of_us(self, monkeypatch, caplog):
        def fails(*_):
            raise DatabaseError("no such column")

        monkeypatch.setattr(follow_code, "make_first_jobs", fails)
        assert migrated() == set()
        assert "The first start makes the jobs: no such column" in caplog.text

    def test_while_instances_live_their_successors_make_what_is_new(self, monkeypatch):
        engine = make_engine(now=sync_now())
        assert migrated() == set(), "those of the release before would take it for an orphan"
        leave(engine)
        assert "nightly" in migrated()

    def test_the_copy_of_another_environment_gets_none(self):
        Environment.objects.create(name="production")
        assert migrated() == set()


def sync_now():
    return shared_now(Engine().using)


class TestCommands:
    def test_what_the_code_registers_is_shown_where_there_is_no_job(self):
        (line,) = [line for line in command("task_schedule").splitlines() if line.startswith("nightly")]
        assert "03:00:00" in line
        assert "scheduled" in line
        assert "nightly" in command("task_schedule", "nightly")
        assert json.loads(command("task_schedule", "nightly", "--json"))[0]["would_run_at"][11:16] == "03:00"
        assert not Job.objects.exists(), "looking makes none"

    def test_a_task_whose_job_nothing_has_made_yet_is_shown_among_the_jobs_and_says_so(self):
        make_job("another")
        make_job("zebra")
        ours = ("another", "nightly", "zebra")
        told = {line.split()[0]: line for line in command("task_schedule").splitlines() if line.startswith(ours)}
        assert tuple(told) == ours
        assert "not made yet" in told["nightly"]
        assert "not made yet" not in told["zebra"]
        assert "nightly" in command("task_schedule", "--next", "1")
        assert {one["name"] for one in json.loads(command("task_schedule", "--json"))} >= set(ours)
        migrated()
        assert "not made yet" not in command("task_schedule")

    def test_the_next_slots_of_a_job_that_run_task_has_just_made_are_told(self):
        command("run_task", "nightly", "--enqueue")
        rows = json.loads(command("task_schedule", "--next", "3", "--json"))
        assert [row["scheduled_for"][11:16] for row in rows if row["job"] == "nightly"] == ["03:00"] * 3

    def test_a_disabled_job_tells_what_its_next_run_would_be_and_that_it_is_off(self):
        make_job("off", DailyAt(hour=4), columns={"enabled": False, "next_run_at": None, "wake_at": None})
        (line,) = [line for line in command("task_schedule").splitlines() if line.startswith("off")]
        assert "04:00:00" in line
        assert "if it were enabled" in line
        rows = json.loads(command("task_schedule", "off", "--next", "1", "--json"))
        assert [(row["scheduled_for"][11:16], row["note"]) for row in rows] == [
            ("04:00", "disabled: if it were enabled")
        ]


class TestDisabled:
    def test_get_job_and_list_jobs_tell_what_the_next_slot_would_be(self):
        make_job("nightly", DailyAt(hour=3), task="nightly")
        assert update_job("nightly", enabled=False).next_run_at is None
        would = get_job("nightly").would_run_at
        assert (would.hour, would.minute) == (3, 0)
        assert [job.would_run_at for job in list_jobs()] == [would]
        assert get_job("nightly").would_run_at - sync_now() <= timedelta(days=1)

    def test_an_enabled_job_has_its_plan_instead(self):
        make_job("nightly", DailyAt(hour=3), task="nightly")
        assert (get_job("nightly").would_run_at, get_job("nightly").next_run_at.hour) == (None, 3)


class TestListJobs:
    @pytest.fixture(autouse=True)
    def jobs(self):
        make_job("a", DailyAt(hour=3))
        make_job("b", columns={"enabled": False, "group": "g", "wake_at": None, "next_run_at": None})
        make_job("c", task="other", columns={"group": "g"})

    @pytest.mark.parametrize(
        ("filters", "names"),
        [
            ({}, ["a", "b", "c"]),
            ({"state": "disabled"}, ["b"]),
            ({"state": "scheduled", "group": "g"}, ["c"]),
            ({"task": "task"}, ["a", "b"]),
            ({"group": ""}, ["a"]),
            ({"enabled": True}, ["a", "c"]),
        ],
    )
    def test_filters_are_added_up(self, filters, names):
        assert [job.name for job in list_jobs(**filters)] == names

    def test_a_state_that_there_is_not_is_refused_with_those_there_are(self):
        with pytest.raises(InvalidOption, match="state is 'asleep'; it must be one of scheduled, running, paused"):
            list_jobs(state="asleep")
