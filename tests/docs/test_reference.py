"""The facts in the reference are those of the code."""

import inspect
import re
from dataclasses import fields
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

import pytest
from django.apps import apps
from django.dispatch import Signal

import scheduler
from scheduler import checks, signals
from scheduler.conf import SETTINGS
from scheduler.exceptions import ConfigurationError
from scheduler.executors import render_kwargs
from scheduler.management import commands
from scheduler.placeholders import NAMES
from scheduler.policy import Policy
from scheduler.policy.base import NOT_FOR_USERS
from scheduler.policy.executor import OPTIONAL, executors
from scheduler.registry import Registry
from scheduler.runtime import runner
from scheduler.runtime.runner import Runner
from scheduler.schedules import OnActivity, parse_text
from scheduler.schedules.activity import DEFAULTS
from scheduler.testing import run_context
from tests.docs.pages import in_code, named, page, rows, table
from tests.factories import T0

SETTING_ROWS = {row[0].strip("`"): row[1:] for row in rows("reference/settings.md")}


def test_every_setting_is_documented_and_no_other() -> None:
    assert sorted(SETTING_ROWS) == sorted(SETTINGS)


@pytest.mark.parametrize("name", sorted(SETTINGS))
def test_a_setting_is_documented_with_its_values_default_and_meaning(name: str) -> None:
    must, default, meaning = SETTING_ROWS[name]
    assert must == SETTINGS[name].must
    assert eval(default.strip("`")) == SETTINGS[name].default
    assert meaning == SETTINGS[name].meaning


def test_a_how_to_that_repeats_a_default_repeats_the_real_one() -> None:
    (repeated, *rest) = table("how-to/keep-the-run-log-small.md", "Keep the run log small")
    assert repeated[:2] == ["setting", "default"]
    for name, default, _ in rest:
        assert int(default.replace(",", "")) == SETTINGS[name.strip("`")].default


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("SCHEDULER_ENABLED", "false"),
        ("SCHEDULER_AUTODISCOVER_MODULES", "tasks"),
        ("SCHEDULER_AUTODISCOVER_EXCLUDE", "shop"),
    ],
)
def test_a_wrong_value_of_the_settings_that_loading_needs_raises_at_once(settings: Any, name: str, value: str) -> None:
    setattr(settings, name, value)
    with pytest.raises(ConfigurationError, match=name):
        apps.get_app_config("scheduler").ready()
    assert f'`{name}` (`"{value}"`)' in page("reference/settings.md")


def test_every_policy_option_is_documented_and_no_other() -> None:
    documented = [row[0].strip("`") for row in table("reference/options.md", "Of the policy")[1:]]
    assert sorted(documented) == sorted(field.name for field in fields(Policy))


def test_every_argument_of_register_is_documented() -> None:
    own = set(inspect.signature(scheduler.register).parameters) - {"into", "options"}
    assert own <= set(named("reference/options.md"))


def test_the_default_name_of_a_task_is_the_path_of_its_function() -> None:
    tasks = Registry()
    scheduler.register(into=tasks)(test_every_argument_of_register_is_documented)
    assert tasks.names() == [f"{__name__}.test_every_argument_of_register_is_documented"]


def test_every_name_a_placeholder_may_use_is_documented_and_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    given: dict[str, Any] = {}
    monkeypatch.setattr(render_kwargs, "Context", lambda values, **_: given.update(values))
    render_kwargs.rendered({}, run_context(), T0)
    documented = [row[0].strip("`") for row in table("reference/options.md", "Placeholders in keyword arguments")[1:]]
    assert documented == list(given) == list(NAMES)


def test_every_executor_is_documented_and_no_other() -> None:
    (row,) = [row for row in table("reference/options.md", "Of the policy") if row[0] == "`executor`"]
    assert re.findall(r'`"(\w+)"`', row[2]) == [*(one.name for one in executors()), *OPTIONAL]


@pytest.mark.parametrize("row", [row for row in rows("reference/options.md") if hasattr(Policy(), row[0].strip("`"))])
def test_a_plain_default_of_an_option_is_the_real_one(row: list[str]) -> None:
    default: Any = getattr(Policy(), row[0].strip("`"))
    if row[1].startswith("`"):
        assert eval(row[1].strip("`")) == default


def test_the_options_that_mean_nothing_to_users_are_named_and_no_other() -> None:
    sentence = page("reference/options.md").partition("says its own limits.")[2].partition("are refused then")[0]
    assert set(in_code(sentence)) == NOT_FOR_USERS


def test_every_rule_for_users_is_documented_with_its_default_and_its_word() -> None:
    documented = {row[0].strip("`"): row[1:3] for row in table("reference/schedules.md", "OnActivity")[1:]}
    assert list(documented) == list(DEFAULTS)
    line = " ".join(word.strip("`") for _, word in documented.values())
    said = OnActivity(**{name: _as_said(default) for name, (default, _) in documented.items()})
    assert said == OnActivity() == parse_text(f"on activity {line}")


def _as_said(default: str) -> Any:
    return int(default) if default.isdecimal() else default


def test_every_thread_is_named_where_it_is_explained(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "is_possible", lambda using: True)  # to listen, as on PostgreSQL
    scheduler.register("for_users", schedule=OnActivity())(lambda user_id, device_id, agent_id: None)
    settings.SCHEDULER_LOCK_URL = "redis://nowhere"
    settings.SCHEDULER_NOTIFY = [{"channel": "email", "to": ["ops@example.com"]}]
    services = {service.name for service in Runner("test").services}
    table = page("explanation/how-it-works.md").partition("| thread |")[2].partition("\n\n")[0]
    assert set(re.findall(r"^\| (\w[\w ]*\w)", table, re.MULTILINE)) == {*services, "workers", "event loop"}


def test_every_signal_is_documented_and_no_other() -> None:
    sent = [name for name, value in vars(signals).items() if isinstance(value, Signal)]
    assert sorted(named("reference/signals.md")) == sorted(sent)


def test_every_check_is_documented_and_no_other() -> None:
    sources = [path.read_text() for path in Path(checks.__file__).parent.rglob("checks.py")]
    ids = re.findall(r'id="(scheduler\.[EW]\d{3})"', "".join(sources))
    assert sorted(set(named("reference/checks.md"))) == sorted(set(ids))


def test_every_command_is_documented_and_no_other() -> None:
    assert sorted(named("reference/commands.md")) == sorted(module.name for module in iter_modules(commands.__path__))
