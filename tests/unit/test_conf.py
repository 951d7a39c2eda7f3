"""Settings: every default keeps its own rule, wrong values are named, overrides work at once."""

import pytest
from django.conf import LazySettings, settings
from django.test import override_settings

from scheduler.conf import SETTINGS, Conf, conf
from scheduler.exceptions import ConfigurationError

NO_REDIS = [
    None,
    5,
    "localhost",
    "localhost:6379",
    "http://h",
    "redis://",
    "redis://h:x",
    "redis://h:99999",
    "unix://",
]
WRONG = {
    "ENABLED": ["yes", 1, None],
    "AUTODISCOVER_MODULES": ["tasks", [1], None],
    "AUTODISCOVER_EXCLUDE": ["shop", [1], None],
    "MAX_WORKERS": [0, -1, 1001, 2.5, True, "4"],
    "POLL_SECONDS": [0, -1, 61, "abc", True],
    "LISTEN": ["yes", 1, None],
    "CLAIM_AHEAD": [-0.1, 5.1, None],
    "HEARTBEAT_SECONDS": [0, 4000, float("nan")],
    "INSTANCE_TTL_SECONDS": [0.4, 10**6],
    "SHUTDOWN_SECONDS": [-1, float("inf")],
    "MIN_INTERVAL": [0, -5],
    "MAX_LOG_CHARS": [99, 10**8, 1000.0],
    "ACTIVITY_TASKS": ["summary", ["summary"], {"a": "every 1h"}, {"a/b": "on activity after 1m"}, {"a": None}],
    "GROUPS": [[], {"a": 0}, {"": 1}, {"a": 1.5}, {"a": True}, {5: 1}, {"g" * 101: 1}, {"g ": 1}, {"\ud800": 1}],
    "DEFAULT_GROUP": [None, 5, "g" * 101, " g", "g\x00", ["g"]],
    "ENVIRONMENT": [None, 5, "e" * 256, "e\x00", "\ud800"],
    "RETENTION_DAYS": [-1, 1.5, None],
    "RETENTION_FAILED_DAYS": [-1, 1.5, None],
    "RETENTION_RUNS": [-1, "many"],
    "HEALTH_TOKEN": [None, 5],
    "METRICS_MAX_JOBS": [-1, 10_001, 2.5, True, None],
    "SESSION_TOKENS": [
        None,
        [],
        {"agents": ""},
        {"http://a": None},
        {"http://a": "ü"},
        {"http://u:p@a": ""},
        {5: ""},
    ],
    "NOTIFY": ["email", [5], [["email"]], {"channel": "email"}, None],
    "SECRET_PINGS": [[], None, "https://x", {"job": 5}, {5: "https://x"}, {"": "https://x"}],
    "API_JOBS": [None, 5, ["shop.jobs_of"]],
    "NOTIFY_PRIVATE": ["yes", 1, None],
    "LOCK_URL": NO_REDIS,
    "ACTIVITY_STORE": NO_REDIS,
    "MAX_CONCURRENT": [0, -1, 1001, 2.5, True, "5"],
    "CHECK_INTERVAL": [0, -1, 4000, "10", True],
}
"""Values that each setting refuses (U1: a wrong setting is refused, not obeyed)."""


@pytest.mark.parametrize("name", sorted(SETTINGS))
def test_every_default_keeps_its_own_rule_and_has_a_meaning(name):
    setting = SETTINGS[name]
    assert setting.rule(setting.default)
    assert setting.meaning.endswith(".")
    assert setting.must


def test_every_setting_has_wrong_values_above():
    assert {f"SCHEDULER_{name}" for name in WRONG} == set(SETTINGS)


@pytest.mark.parametrize(("name", "value"), [(name, value) for name in WRONG for value in WRONG[name]])
def test_a_wrong_value_is_named_with_what_it_must_be(name, value):
    with (
        override_settings(**{f"SCHEDULER_{name}": value}),
        pytest.raises(ConfigurationError, match=f"SCHEDULER_{name} is .*must be"),
    ):
        getattr(conf, name)


def test_an_override_works_at_once_and_ends():
    with override_settings(SCHEDULER_POLL_SECONDS=1.5):
        assert conf.POLL_SECONDS == 1.5
    assert conf.POLL_SECONDS == 5.0


@pytest.mark.parametrize(
    ("name", "default"),
    [
        ("ENABLED", True),
        ("MAX_WORKERS", 4),
        ("POLL_SECONDS", 5.0),
        ("CLAIM_AHEAD", 0.25),
        ("HEARTBEAT_SECONDS", 10.0),
        ("INSTANCE_TTL_SECONDS", 60.0),
        ("SHUTDOWN_SECONDS", 30.0),
        ("MIN_INTERVAL", 1.0),
    ],
)
def test_the_defaults_are_those_of_the_design(name, default):
    assert getattr(Conf, name) == default


def test_a_setting_is_seen_on_any_level_and_gone_where_it_is_deleted():
    with override_settings(SCHEDULER_MAX_LOG_CHARS=500), override_settings(DEBUG=True):
        assert conf.MAX_LOG_CHARS == 500
        settings.SCHEDULER_MAX_LOG_CHARS = 600
        assert conf.MAX_LOG_CHARS == 600
        with override_settings():
            del settings.SCHEDULER_MAX_LOG_CHARS
            assert conf.MAX_LOG_CHARS == 64_000
        assert conf.MAX_LOG_CHARS == 600
    assert conf.MAX_LOG_CHARS == 64_000


def test_settings_of_a_kind_of_their_own_are_asked(monkeypatch):
    class Remote:
        def __getattr__(self, name):
            if name == "SCHEDULER_MAX_LOG_CHARS":
                return 700
            raise AttributeError(name)

    with monkeypatch.context() as patch:
        patch.setattr(settings, "_wrapped", Remote())
        assert conf.MAX_LOG_CHARS == 700
    assert conf.MAX_LOG_CHARS != 700


def test_django_is_not_asked_for_what_is_not_set(monkeypatch):
    asked = []
    monkeypatch.setattr(LazySettings, "__getattr__", lambda self, name: asked.append(name))
    assert (conf.MAX_LOG_CHARS, asked) == (64_000, [])
