"""The environment gives settings their types; what cannot be read stays text, so that a check names it."""

import pytest
from django.core.checks import run_checks
from django.test import override_settings

from scheduler.conf import SETTINGS
from scheduler.env import scheduler_settings


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("SCHEDULER_ENABLED", "false", False),
        ("SCHEDULER_ENABLED", "True", True),
        ("SCHEDULER_MAX_WORKERS", "8", 8),
        ("SCHEDULER_POLL_SECONDS", "0.5", 0.5),
        ("SCHEDULER_HEALTH_TOKEN", "a=b,c", "a=b,c"),
        ("SCHEDULER_AUTODISCOVER_MODULES", "tasks,jobs", ["tasks", "jobs"]),
        ("SCHEDULER_AUTODISCOVER_EXCLUDE", '["shop"]', ["shop"]),
        ("SCHEDULER_GROUPS", "serial=1,mail=3", {"serial": 1, "mail": 3}),
        ("SCHEDULER_GROUPS", '{"serial": 1}', {"serial": 1}),
    ],
)
def test_a_setting_has_the_type_of_the_table(name, text, value):
    assert scheduler_settings({name: text, "OTHER": "1"}) == {name: value}
    assert SETTINGS[name].rule(value)


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("SCHEDULER_MAX_WORKERS", "many", "scheduler.E001"),
        ("SCHEDULER_GROUPS", "serial", "scheduler.E001"),
        ("SCHEDULER_GROUPS", "{serial", "scheduler.E001"),
        ("SCHEDULER_POLL_SECOND", "5", "scheduler.W001"),
    ],
)
def test_what_cannot_be_read_is_told_by_a_check(name, text, told):
    with override_settings(**scheduler_settings({name: text})):
        assert told in [message.id for message in run_checks()]


def test_a_switch_that_is_neither_is_no_no():
    assert scheduler_settings({"SCHEDULER_ENABLED": "yess"}) == {"SCHEDULER_ENABLED": "yess"}


def test_it_reads_the_environment(monkeypatch):
    monkeypatch.setenv("SCHEDULER_MAX_WORKERS", "3")
    assert scheduler_settings()["SCHEDULER_MAX_WORKERS"] == 3
