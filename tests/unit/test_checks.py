"""System checks: each finds its fault, names it and the way out, and is silent on a healthy project."""

import subprocess
import sys
from pathlib import Path

import pytest
from django.core.checks import run_checks
from django.db import connections
from django.test import override_settings

from scheduler import checks
from scheduler.conf import SETTINGS, conf
from scheduler.exceptions import ConfigurationError
from scheduler.policy import executor
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


@pytest.mark.parametrize("name", ["SCHEDULAR_MAX_WORKERS", "SHEDULER_MAX_WORKERS", "SCHEDULE_MAX_WORKER"])
def test_W001_a_slip_in_the_first_word(name):
    with override_settings(**{name: 5}):
        assert found()["scheduler.W001"].hint == "Did you mean SCHEDULER_MAX_WORKERS?"


@pytest.mark.parametrize("name", ["APSCHEDULER_DATETIME_FORMAT", "SCHEDULES", "MAX_WORKERS", "CELERY_MAX_WORKERS"])
def test_settings_of_others_are_left_alone(name):
    with override_settings(**{name: 5}):
        assert found() == {}


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


def test_a_tasks_module_of_another_package_stops_no_deployment_and_can_be_left_out(monkeypatch):
    monkeypatch.setitem(registry.failures, "django.contrib.auth.tasks", "ModuleNotFoundError: No module named 'celery'")
    found_here = run_checks(include_deployment_checks=True)
    assert [one for one in found_here if one.id == "scheduler.E002"] == []
    (warning,) = [one for one in found_here if one.id == "scheduler.W004"]
    assert "'django.contrib.auth.tasks' to SCHEDULER_AUTODISCOVER_EXCLUDE" in warning.hint


def test_W002_a_neighbour_with_the_same_top_level_package(monkeypatch):
    monkeypatch.setattr(checks, "_neighbours", lambda: ["django-tasks-scheduler"])
    assert "django-tasks-scheduler" in found()["scheduler.W002"].msg


@pytest.mark.parametrize("file", ["scheduler/__init__.py", "scheduler.py"])
def test_W002_a_package_of_the_project_that_the_order_of_the_path_hides(file, tmp_path, monkeypatch):
    hidden = tmp_path / file
    hidden.parent.mkdir(exist_ok=True)
    hidden.touch()
    monkeypatch.syspath_prepend(tmp_path)

    assert f"{hidden} is named 'scheduler' too" in found()["scheduler.W002"].msg


def test_W002_is_silent_about_a_folder_that_is_no_package(tmp_path, monkeypatch):
    (tmp_path / "scheduler").mkdir()
    monkeypatch.syspath_prepend(tmp_path)

    assert found() == {}


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
        assert f"{setting} is wrong" in found()["scheduler.E001"].msg
        assert "scheduler.E004" not in found()


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("SCHEDULER_LOCK_URL", "redis://:geheim@host:port/0"),
        ("SCHEDULER_LOCK_URL", "redis://:ge/heim@host/0"),
        ("SCHEDULER_ACTIVITY_STORE", "redis://user:geheim@host/0?nonsense=1"),
        ("SCHEDULER_ACTIVITY_STORE", ["redis://user:geheim@host/0"]),
        ("SCHEDULER_HEALTH_TOKEN", b"geheim"),
        ("SCHEDULER_HEALTH_TOKEN", "geheim\n"),
        ("SCHEDULER_SESSION_TOKENS", {"http://host": "geheim\n"}),
        ("SCHEDULER_SESSION_TOKENS", {"http://user:geheim@host": ""}),
    ],
)
def test_a_setting_that_holds_a_secret_is_never_quoted(setting, value):
    with override_settings(**{setting: value}):
        message = found()["scheduler.E001"]
        with pytest.raises(ConfigurationError) as refused:
            getattr(conf, setting.removeprefix("SCHEDULER_"))
    assert setting in message.msg
    assert "heim" not in f"{message.msg}{message.hint}{refused.value}"
    assert refused.value.__cause__ is None


def test_every_setting_that_may_hold_a_secret_is_known():
    secret = {name for name, setting in SETTINGS.items() if setting.secret}
    assert secret == {
        "SCHEDULER_LOCK_URL",
        "SCHEDULER_ACTIVITY_STORE",
        "SCHEDULER_HEALTH_TOKEN",
        "SCHEDULER_SESSION_TOKENS",
        "SCHEDULER_NOTIFY",
        "SCHEDULER_SECRET_PINGS",
    }


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
        warnings = [message for message in run_checks() if message.id == "scheduler.W003"]
    messages = [warning.msg for warning in warnings]
    assert "a schedule by the clock" in warnings[0].hint
    assert len(messages) == 1
    assert "'odd'" in messages[0]
    assert words in messages[0]


@pytest.mark.parametrize(
    ("logging", "warns"),
    [
        ({}, False),
        ({"version": 1}, True),
        ({"version": 1, "disable_existing_loggers": True, "loggers": {"django": {}}}, True),
        ({"version": 1, "disable_existing_loggers": True, "loggers": {"scheduler": {}}}, False),
        ({"version": 1, "disable_existing_loggers": False}, False),
    ],
)
def test_W005_a_logging_that_takes_our_lines_under_runserver(logging, warns):
    with override_settings(LOGGING=logging):
        assert ("scheduler.W005" in found()) is warns


def test_W005_such_a_logging_really_silences_us_when_django_is_set_up_twice():
    code = """
import logging, django
from django.conf import settings
settings.configure(LOGGING={"version": 1}, INSTALLED_APPS=["django.contrib.contenttypes", "scheduler"])
for _ in range(2):
    django.setup()
    print(logging.getLogger("scheduler").disabled)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True"]


def test_E006_a_database_that_commits_nothing_by_itself(monkeypatch):
    monkeypatch.setitem(connections["default"].settings_dict, "AUTOCOMMIT", False)
    assert "AUTOCOMMIT" in found()["scheduler.E006"].msg


def test_no_hint_names_a_file_of_the_repository_which_a_package_does_not_have():
    assert "docs/" not in Path(checks.__file__).read_text()


def test_W006_an_executor_that_cannot_be_imported(monkeypatch):
    monkeypatch.setattr(executor, "_executors", dict(executor._executors))
    executor.register_executor("rocket", "moon.Rocket")
    monkeypatch.setattr(checks, "registry", make_registry("flies", executor="rocket"))
    message = found()["scheduler.W006"]
    assert "'rocket'" in message.msg
    assert "moon.Rocket" in message.msg
    assert "register_executor" in message.hint
    assert "its runs fail" in message.hint


class BrokerAway:
    def __init__(self):
        raise OSError("no broker")


class Handover(BrokerAway):
    def send(self, run): ...


class Caller(BrokerAway):
    def call(self, living, clock, ended): ...


@pytest.mark.parametrize(
    ("kind", "hands_over", "missing"),
    [(Handover, True, ""), (Handover, False, "call"), (Caller, False, ""), (Caller, True, "send")],
)
def test_W006_looks_at_the_class_and_makes_no_instance_which_may_connect(monkeypatch, kind, hands_over, missing):
    monkeypatch.setattr(executor, "_executors", dict(executor._executors))
    executor.register_executor("rocket", f"{__name__}.{kind.__name__}", hands_over=hands_over)
    monkeypatch.setattr(checks, "registry", make_registry("flies", executor="rocket"))
    message = found().get("scheduler.W006")
    assert bool(message) == bool(missing)
    if message:
        assert f"'rocket', '{__name__}.{kind.__name__}', has no method {missing}()." in message.msg
        assert ("its runs wait" if hands_over else "its runs fail") in message.hint


def test_W006_an_import_may_raise_anything_and_runs_that_are_handed_over_wait(monkeypatch, tmp_path):
    (tmp_path / "sinking_module.py").write_text("raise RuntimeError('sinks')")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(executor, "_executors", dict(executor._executors))
    executor.register_executor("rocket", "sinking_module.Rocket", hands_over=True)
    monkeypatch.setattr(checks, "registry", make_registry("flies", executor="rocket"))
    message = found()["scheduler.W006"]
    assert "RuntimeError: sinks" in message.msg
    assert "its runs wait" in message.hint


@pytest.fixture
def serves_metrics(monkeypatch):
    monkeypatch.setitem(sys.modules, "scheduler.metrics.urls", checks)


@pytest.mark.usefixtures("serves_metrics")
def test_E022_metrics_without_the_package_that_writes_them(monkeypatch):
    monkeypatch.setattr(checks, "find_spec", lambda name: None)
    message = found()["scheduler.E022"]
    assert "[metrics]" in message.hint


def test_without_the_urls_of_the_metrics_nothing_is_missing(monkeypatch):
    monkeypatch.delitem(sys.modules, "scheduler.metrics.urls", raising=False)
    monkeypatch.setattr(checks, "find_spec", lambda name: None)
    assert "scheduler.E022" not in found()
    assert checks.check_who_sees_metrics(None) == []


@pytest.mark.usefixtures("serves_metrics")
def test_W022_metrics_that_no_scraper_may_see(settings):
    assert [message.id for message in checks.check_who_sees_metrics(None)] == ["scheduler.W022"]
    settings.SCHEDULER_HEALTH_TOKEN = "secret"
    assert checks.check_who_sees_metrics(None) == []


SINKS = "sinking_module.tell"


@pytest.fixture
def sinking_module(tmp_path, monkeypatch):
    (tmp_path / "sinking_module.py").write_text("raise SystemError('sinks')")
    monkeypatch.syspath_prepend(tmp_path)


@pytest.mark.usefixtures("sinking_module")
@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("shop.nothing.tell", "cannot be imported: ModuleNotFoundError"),
        ("scheduler.clock.Nothing", "cannot be imported: ImportError"),
        (SINKS, "cannot be imported: SystemError: sinks"),
        ("scheduler.checks.DISTRIBUTION", "cannot be called"),
    ],
)
def test_E023_E024_a_function_that_cannot_be_called(settings, path, says):
    settings.SCHEDULER_NOTIFY = [{"channel": "email", "to": ["a@example.com"]}, {"channel": "call", "function": path}]
    settings.SCHEDULER_API_JOBS = path
    messages = found()
    for place, code in (("SCHEDULER_NOTIFY[1]: function", "E023"), ("SCHEDULER_API_JOBS", "E024")):
        message = messages[f"scheduler.{code}"]
        assert message.msg.startswith(f"{place} is '{path}', which {says}")
        assert message.hint


def test_functions_that_can_be_called_and_values_that_E001_and_E007_name_are_no_further_error(settings):
    settings.SCHEDULER_NOTIFY = [{"channel": "call", "function": "scheduler.clock.Clock", "name": "one"}]
    settings.SCHEDULER_API_JOBS = "scheduler.clock.Clock"
    assert found() == {}
    settings.SCHEDULER_NOTIFY = [
        {"channel": "call", "function": print},
        {"channel": "call", "function": 5, "name": "x"},
    ]
    settings.SCHEDULER_API_JOBS = 5
    assert set(found()) == {"scheduler.E001", "scheduler.E007"}
