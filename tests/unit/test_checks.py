"""System checks: each finds its fault, names it and the way out, and is silent on a healthy project."""

import pytest
from django.core.checks import run_checks
from django.test import override_settings

from scheduler import checks
from scheduler.registry import register, registry
from scheduler.schedules import AfterJobs, Every
from tests.factories import make_registry

pytestmark = pytest.mark.django_db  # Django's own checks of JSON columns ask the database


def found(prefix="scheduler."):
    return {message.id: message for message in run_checks() if (message.id or "").startswith(prefix)}


def test_a_healthy_project_has_nothing_to_say():
    assert found() == {}


@pytest.mark.parametrize("value", [0, -1, "abc"])
def test_E001_a_setting_with_a_wrong_value_U1(value):
    with override_settings(SCHEDULER_POLL_SECONDS=value):
        message = found()["scheduler.E001"]
    assert "SCHEDULER_POLL_SECONDS" in message.msg
    assert message.hint


def test_W001_a_setting_nobody_reads_with_a_near_name():
    with override_settings(SCHEDULER_POLL_SECOND=5):
        message = found()["scheduler.W001"]
    assert "SCHEDULER_POLL_SECOND " in message.msg
    assert message.hint == "Did you mean SCHEDULER_POLL_SECONDS?"


def test_W004_a_tasks_module_that_cannot_be_imported_blocks_no_command_I2_I17(monkeypatch):
    monkeypatch.setitem(registry.failures, "app.tasks", "ImportError: no reports")
    message = found()["scheduler.W004"]
    assert "app.tasks" in message.msg
    assert "no reports" in message.msg
    assert [one for one in run_checks() if one.is_serious()] == []


def test_E002_a_tasks_module_that_cannot_be_imported_stops_a_deployment(monkeypatch):
    monkeypatch.setitem(registry.failures, "app.tasks", "ImportError: no reports")
    (message,) = [one for one in run_checks(include_deployment_checks=True) if one.id == "scheduler.E002"]
    assert message.is_serious()
    assert "app.tasks" in message.msg


def test_W002_a_neighbour_with_the_same_top_level_package(monkeypatch):
    monkeypatch.setattr(checks, "_neighbours", lambda: ["django-tasks-scheduler"])
    assert "django-tasks-scheduler" in found()["scheduler.W002"].msg


def test_E003_a_lease_that_one_late_heartbeat_would_break():
    with override_settings(SCHEDULER_HEARTBEAT_SECONDS=30, SCHEDULER_INSTANCE_TTL_SECONDS=60):
        assert "three times" in found()["scheduler.E003"].msg
    with override_settings(SCHEDULER_HEARTBEAT_SECONDS=20, SCHEDULER_INSTANCE_TTL_SECONDS=60):
        assert "scheduler.E003" not in found()


def test_wrong_settings_are_one_error_each_and_no_traceback():
    with override_settings(SCHEDULER_HEARTBEAT_SECONDS="x", SCHEDULER_INSTANCE_TTL_SECONDS="y"):
        messages = [message for message in run_checks() if message.id == "scheduler.E001"]
    assert len(messages) == 2


@pytest.mark.parametrize("setting", ["SCHEDULER_LOCK_URL", "SCHEDULER_ACTIVITY_STORE"])
def test_E004_a_redis_without_redis_py(setting, monkeypatch):
    with override_settings(**{setting: "redis://localhost"}):
        assert "scheduler.E004" not in found()
    monkeypatch.setattr(checks, "find_spec", lambda name: None)
    assert "scheduler.E004" not in found()
    with override_settings(**{setting: "redis://localhost"}):
        message = found()["scheduler.E004"]
    assert f"{setting} is set and redis-py is not installed" in message.msg
    assert "django-inprocess-scheduler[redis]" in message.hint


@pytest.mark.parametrize("setting", ["SCHEDULER_LOCK_URL", "SCHEDULER_ACTIVITY_STORE"])
def test_E001_a_redis_url_that_is_none(setting):
    with override_settings(**{setting: "localhost:6379"}):
        assert f"{setting} is 'localhost:6379'; it must be" in found()["scheduler.E001"].msg
        assert "scheduler.E004" not in found()


@pytest.mark.parametrize(
    "url", ["redis://host", "rediss://:secret@host:6380/2?socket_timeout=5", "unix:///run/redis.sock"]
)
def test_a_lock_url_of_every_kind_is_fine(url):
    with override_settings(SCHEDULER_LOCK_URL=url):
        assert found() == {}


@pytest.mark.parametrize(
    ("schedule", "words"),
    [
        (Every(hours=1, from_completion=True), "every host will run it"),
        (AfterJobs("extract", "load"), "no host will run it"),
    ],
)
def test_W003_a_schedule_whose_slots_hosts_cannot_agree_on(schedule, words, monkeypatch):
    tasks = make_registry("odd", schedule=schedule)
    register("fine", schedule=AfterJobs("extract"), into=tasks)(lambda: None)
    register("plain", schedule=Every(hours=1), into=tasks)(lambda: None)
    monkeypatch.setattr(checks, "registry", tasks)
    assert "scheduler.W003" not in found()
    with override_settings(SCHEDULER_LOCK_URL="redis://localhost"):
        messages = [message.msg for message in run_checks() if message.id == "scheduler.W003"]
    assert len(messages) == 1
    assert "'odd'" in messages[0]
    assert words in messages[0]
