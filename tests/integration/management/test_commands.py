"""Commands: a user's mistake is one clear line and exit code 2, and what programs read is JSON throughout."""

import json
import re
from datetime import datetime, timedelta
from io import StringIO

import pytest
from django import VERSION
from django.core.management import CommandError, call_command

from scheduler import Postpone
from scheduler.engine.control import pause_all, pause_group, pause_job
from scheduler.health import get_scheduler_status
from scheduler.management.commands import list_tasks, run_scheduler, run_task, task_schedule
from scheduler.models import Job, RunLog, Status
from scheduler.registry import Registry, register, registry
from scheduler.runtime.interrupt import StopRequest
from scheduler.schedules import Every
from scheduler.schedules.instants import instant_text
from tests.factories import T0, at, make_engine, make_job, make_registry, run_at
from tests.integration.conftest import FILE_ALIAS, OnlyFile, on_file


def command(*arguments):
    out = StringIO()
    call_command(*arguments, stdout=out, stderr=StringIO())
    return out.getvalue()


def refusal(*arguments):
    """Return what a command says that was asked for wrongly."""
    with pytest.raises(CommandError) as raised:
        command(*arguments)
    assert raised.value.returncode == 2
    return str(raised.value)


@pytest.fixture
def known():
    register("count_orders", schedule="every 1h")(lambda: 42)
    yield registry
    registry.remove("count_orders")


@pytest.fixture
def on_an_empty_file(tmp_path, settings, django_db_blocker, known):
    settings.DATABASE_ROUTERS = [OnlyFile()]
    with django_db_blocker.unblock(), on_file(tmp_path / "db.sqlite3"):
        yield


@pytest.mark.usefixtures("on_an_empty_file")
class TestBeforeMigrate:
    @pytest.mark.parametrize(
        "arguments",
        [
            ["task_schedule"],
            ["task_schedule", "--why", "count_orders", "02:00"],
            ["run_task", "count_orders"],
            ["run_task", "count_orders", "--enqueue"],
            ["prune_runs"],
        ],
        ids=" ".join,
    )
    def test_a_command_says_what_to_do(self, arguments):
        said = refusal(*arguments)
        assert "run `python manage.py migrate`" in said
        assert "\n" not in said

    def test_health_says_the_same(self):
        status = get_scheduler_status()
        assert status.status == "unavailable"
        assert "run `python manage.py migrate`" in str(status.problems[0])


@pytest.mark.usefixtures("on_an_empty_file")
def test_migrate_makes_the_jobs_that_the_code_registers_once_their_tables_are_all_there(caplog):
    call_command("migrate", "contenttypes", database=FILE_ALIAS, verbosity=0)
    assert caplog.text == "", "it stopped on its way: nothing is wrong"
    call_command("migrate", database=FILE_ALIAS, verbosity=0)
    assert "count_orders" in Job.objects.values_list("name", flat=True)
    assert "count_orders" in command("task_schedule", "--next", "1")
    call_command("migrate", "scheduler", "zero", database=FILE_ALIAS, verbosity=0)
    assert caplog.text == ""


def test_a_database_that_does_not_answer_is_not_one_that_awaits_migrate(tmp_path, settings, django_db_blocker):
    settings.DATABASE_ROUTERS = [OnlyFile()]
    with django_db_blocker.unblock(), on_file(tmp_path / "no such folder" / "db.sqlite3"):
        assert refusal("task_schedule") == "The database does not answer: unable to open database file"
        assert [*map(str, get_scheduler_status().problems)] == ["the database does not answer: OperationalError"]


@pytest.mark.django_db
@pytest.mark.usefixtures("known")
class TestBeforeTheFirstStart:
    def test_a_registered_task_can_be_enqueued(self):
        assert "waits for the scheduler" in command("run_task", "count_orders", "--enqueue")
        assert RunLog.objects.get().job.name == "count_orders"

    def test_who_asks_why_hears_when_there_will_be_a_job(self):
        said = "The task 'count_orders' is registered; its job is made by `migrate`, or when the scheduler starts."
        assert refusal("task_schedule", "--why", "count_orders", "02:00") == said


@pytest.mark.django_db
class TestOptionsOutOfRange:
    @pytest.mark.parametrize(
        ("arguments", "said"),
        [
            (["prune_runs", "--days", "800000"], "--days is 800000; it must be a whole number from 0 to 36500."),
            (["prune_runs", "--keep", "-1"], "--keep is -1; it must be a whole number from 0 to 100000000."),
            (["task_schedule", "--next", "0"], "--next is 0; it must be from 1 to 1000."),
            (["task_schedule", "--next", "1001"], "--next is 1001; it must be from 1 to 1000."),
        ],
        ids=lambda value: " ".join(value) if isinstance(value, list) else "",
    )
    def test_they_are_refused_with_the_range(self, arguments, said):
        assert refusal(*arguments) == said


@pytest.mark.django_db
def test_no_slot_is_told_that_will_not_come(monkeypatch):
    monkeypatch.setattr(task_schedule, "shared_now", lambda _: T0)
    make_job("ends", Every(hours=1), ends_at=at(hours=2))
    make_job("twice", Every(hours=3), max_runs=2)
    make_job("stopped", Every(hours=3), columns={"next_run_at": None, "wake_at": None, "enabled": False})
    slots = json.loads(command("task_schedule", "--next", "9", "--json"))
    assert [(slot["job"], slot["scheduled_for"][11:13]) for slot in slots] == [
        ("ends", "13"), ("ends", "14"), ("twice", "15"), ("twice", "18"),
    ]  # fmt: skip


@pytest.mark.django_db
class TestPausesOfAGroupOrOfEverything:
    """A job that only such a pause keeps from starting is paused."""

    @pytest.fixture(params=["group", "all"])
    def pause(self, request, monkeypatch):
        """How the pause is named in a sentence, and to programs."""
        monkeypatch.setattr(task_schedule, "shared_now", lambda _: T0)
        make_job("job", Every(hours=1), columns={"group": "night"})
        make_job("off", Every(hours=1), columns={"group": "night", "enabled": False})
        if request.param == "all":
            pause_all(reason="moving house", until=at(hours=9_000_000))
            return "Everything", "*"
        pause_group("night", reason="moving house", until=at(hours=9_000_000))
        return "Group night", "night"

    def test_it_is_told_with_the_job(self, pause):
        job, off = command("task_schedule").splitlines()[1:]
        assert job.split()[:2] == ["job", "paused"]
        assert f"{pause[0]} is paused until" in job
        assert job.endswith(": moving house")
        assert "is paused" not in off

    def test_it_is_told_to_programs(self, pause):
        job, off = json.loads(command("task_schedule", "--json"))
        assert (job["state"], job["paused_by_group"], job["next_run_at"]) == ("paused", pause[1], None)
        assert job["next_start_at"] == instant_text(at(hours=9_000_000))
        assert (off["state"], off["paused_by_group"]) == ("disabled", None)

    def test_no_slot_is_told(self, pause):
        assert command("task_schedule", "--next", "3") == "No job has a slot to come.\n"

    def test_it_is_told_with_the_state_of_the_scheduler(self, pause):
        (line,) = (line for line in command("task_schedule", "--status").splitlines() if " is paused" in line)
        assert line.startswith(f"{pause[0]} is paused until")
        jobs = get_scheduler_status().jobs
        assert jobs["everything_paused"] is (pause[1] == "*")
        assert jobs["paused_groups"] == [name for name in pause[1:] if name != "*"]


@pytest.mark.django_db
class TestJSON:
    def test_instants_are_written_as_the_api_writes_them(self, known, engine_of_job):
        (job,) = [one for one in json.loads(command("task_schedule", "--json")) if one["name"] == "job"]
        text = command("task_schedule", "job", "--next", "1", "--json")
        for instant in (job["next_run_at"], job["last_run_at"], json.loads(text)[0]["scheduled_for"]):
            assert instant == instant_text(datetime.fromisoformat(instant))
        pause_job("job", until=at(hours=9_000_000))
        asked = (
            ["--why", "job", "now"],
            ["--history", "job"],
            ["--preview", "every 1h"],
        )
        told = [command("task_schedule", *words, "--json") for words in asked]
        told += [command(name, "--json") for name in ("task_schedule", "export_schedules")]
        for text in told:
            assert re.search(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", text)
            assert "+00:00" not in text

    def test_modules_that_failed_are_told_to_programs_too(self, known, monkeypatch):
        monkeypatch.setitem(registry.failures, "shop.tasks", "ImportError: no reports")
        out = StringIO()
        with pytest.raises(CommandError, match="Tasks are missing") as ended:
            call_command("list_tasks", "--json", stdout=out)
        assert json.loads(out.getvalue())["failed_modules"] == {"shop.tasks": "ImportError: no reports"}
        assert ended.value.returncode == 1

    def test_what_a_persons_change_hides_of_the_code_is_marked(self, monkeypatch):
        tasks = make_registry("task", retries=2)
        monkeypatch.setattr("scheduler.engine.views.overrides.registry", tasks)
        columns = {"source": "app.tasks", "overridden_fields": ["policy.retries", "schedule"]}
        make_job("task", Every(minutes=5), retries=7, columns=columns)
        assert json.loads(command("task_schedule", "--json"))[0]["hidden_from_code"] == ["schedule", "policy.retries"]
        assert "the code says otherwise: schedule, policy.retries" in command("task_schedule")

    def test_run_scheduler_says_each_step_in_a_line(self, monkeypatch):
        monkeypatch.setattr(run_scheduler.arm, "claim", lambda *_: True)
        monkeypatch.setattr(run_scheduler.current, "run", lambda by, takes: None)
        monkeypatch.setattr(run_scheduler.current, "stop", lambda: None)
        monkeypatch.setattr(StopRequest, "wait", lambda self: None)
        lines = command("run_scheduler", "--json", "--skip-checks").splitlines()
        assert [json.loads(line) for line in lines] == [{"status": "running"}, {"status": "stopping"}]


@pytest.fixture
def engine_of_job():
    """A job that ran once."""
    job = make_job()
    run_at(make_engine(), at(60))
    return job


@pytest.mark.django_db
class TestHowARunByHandEnds:
    """The exit code says it, and the text says why."""

    def end(self, monkeypatch, **columns):
        """Let `run_task` find a run that ended so."""
        job = Job(name="job")
        row = RunLog(job=job, started_at=T0, finished_at=T0 + timedelta(microseconds=68), **columns)
        monkeypatch.setattr(run_task, "run_in_foreground", lambda *_, **__: row)
        try:
            return command("run_task", "job").rstrip(), 0
        except CommandError as error:
            return str(error), error.returncode

    @pytest.mark.parametrize(
        ("columns", "said", "code"),
        [
            ({"status": Status.SUCCEEDED, "result": "42"}, "job succeeded in 68 µs: 42", 0),
            ({"status": Status.POSTPONED, "reason": "no statement"}, "job postponed after 68 µs: no statement", 0),
            ({"status": Status.FAILED, "error": "KeyError"}, "job failed after 68 µs\nKeyError", 1),
            ({"status": Status.CANCELLED, "reason": "stopped"}, "job cancelled after 68 µs: stopped", 1),
            ({"status": Status.SKIPPED, "reason": "gate: no"}, "job skipped after 68 µs: gate: no", 2),
        ],
        ids=lambda value: value["status"] if isinstance(value, dict) else "",
    )
    def test_by_its_status(self, monkeypatch, columns, said, code):
        assert self.end(monkeypatch, **columns) == (said, code)


@pytest.mark.usefixtures("file_database", "known")
def test_a_task_that_puts_itself_off_is_no_failure():
    def task():
        raise Postpone("the bank has not delivered", minutes=30)

    registry.remove("count_orders")
    register("count_orders")(task)
    said = command("run_task", "count_orders")
    assert "postponed after" in said
    assert "the bank has not delivered" in said


class TestListTasks:
    @pytest.fixture
    def empty(self, monkeypatch):
        tasks = Registry()
        monkeypatch.setattr(list_tasks, "registry", tasks)
        return tasks

    @pytest.mark.parametrize(
        ("modules", "said"), [(["tasks"], "the tasks.py of"), (["task", "jobs"], "task.py or jobs.py")]
    )
    def test_the_hint_of_an_empty_list_names_the_modules_that_are_looked_for(self, empty, modules, said, settings):
        settings.SCHEDULER_AUTODISCOVER_MODULES = modules
        assert said in command("list_tasks")

    @pytest.mark.parametrize(("backend", "said"), [("tasks.SchedulerBackend", True), ("other.Backend", False)])
    def test_where_functions_of_django_tasks_run_it_says_that_they_are_listed_elsewhere(self, backend, said, settings):
        pytest.importorskip("django.tasks" if VERSION >= (6,) else "django_tasks")
        settings.TASKS = {"default": {"BACKEND": f"scheduler.contrib.{backend}"}}
        assert ("under enqueued tasks" in command("list_tasks")) == said

    def test_the_anchor_that_the_code_gives_is_told(self, empty):
        """In the project's zone, as every time that a command prints."""
        for name, schedule in (("pull", Every(hours=6, anchor=T0)), ("push", Every(hours=6))):
            empty.add(make_registry(name, schedule=schedule).get(name))
        pull, push = command("list_tasks").splitlines()[1:]
        assert "Every 6 hours, counted from 2026-03-02 12:00 UTC " in pull
        assert "counted" not in push

    def test_a_module_that_failed_is_named_once_and_without_that_hint(self, empty):
        empty.failures["shop.tasks"] = "ImportError: no reports"
        out, err = StringIO(), StringIO()
        with pytest.raises(CommandError, match="could not be imported: 1"):
            call_command("list_tasks", stdout=out, stderr=err)
        assert "@register" not in out.getvalue()
        assert err.getvalue().count("shop.tasks") == 1
