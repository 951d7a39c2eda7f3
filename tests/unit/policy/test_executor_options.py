"""The options of an executor: JSON, and what the executor says it takes."""

import pytest

from scheduler.exceptions import InvalidOption
from scheduler.policy import executor as module
from scheduler.policy.codec import from_json, from_options, to_json
from scheduler.policy.executor import register_executor
from scheduler.policy.executor_options import LONGEST, ExecutorOptions

QUEUED = {"queue": "slow", "priority": 5}


@pytest.fixture(autouse=True)
def own_executors(monkeypatch):
    monkeypatch.setattr(module, "_executors", dict(module._executors))
    taken = {"queue": str, "priority": range(10), "time_limit": float}
    register_executor("strict", "moon.Rocket", hands_over=True, options=taken)
    register_executor("loose", "moon.Rocket", hands_over=True)


def test_they_survive_the_way_through_the_database_and_cannot_be_changed_there():
    policy = from_options({"executor": "strict", "executor_options": QUEUED})
    assert from_json(to_json(policy)) == policy
    policy.executor_options.values["queue"] = "other"
    assert policy.executor_options.values == QUEUED
    assert hash(policy.executor_options) == hash(ExecutorOptions.parse('{"priority": 5, "queue": "slow"}'))


@pytest.mark.parametrize("given", [{}, None, "{}", ""])
def test_none_are_none(given):
    assert not ExecutorOptions.parse(given or None)
    assert to_json(from_options({"executor_options": given or {}})) == "{}"


@pytest.mark.parametrize(
    "given",
    [5, ["queue"], "queue", "[1]", {1: "a"}, {"a": object()}, {"a": float("nan")}, {"a": "\x00"}, {"a": "x" * LONGEST}],
)
def test_what_is_no_json_object_is_refused_by_the_name_of_the_option(given):
    with pytest.raises(InvalidOption, match=r"^executor_options "):
        from_options({"executor": "loose", "executor_options": given})


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"que": "slow"}, r"has 'que'.*'queue'.*takes priority, queue, time_limit"),
        ({"queue": ""}, "queue is ''"),
        ({"queue": 5}, "queue is 5"),
        ({"priority": 10}, "priority is 10; it must be a whole number from 0 to 9"),
        ({"priority": True}, "priority is True"),
        ({"priority": "5"}, "priority is '5'"),
        ({"time_limit": 0}, "time_limit is 0"),
        ({"time_limit": "1h"}, "time_limit is '1h'"),
        ({"time_limit": True}, "time_limit is True"),
    ],
)
def test_what_the_executor_does_not_take_is_refused_where_it_is_registered(given, told):
    with pytest.raises(InvalidOption, match=rf"^executor_options.*{told}"):
        from_options({"executor": "strict", "executor_options": given})


def test_one_that_does_not_say_what_it_takes_takes_whatever_is_json():
    given = {"deep": [{"er": None}], "que": 1.5}
    assert from_options({"executor": "loose", "executor_options": given}).executor_options.values == given


def test_a_job_is_brought_back_here_by_one_option():
    policy = from_options({"executor": "thread", "executor_options": QUEUED})
    assert policy.executor_options.values == QUEUED


@pytest.mark.parametrize("options", [5, ["queue"], {1: str}, {"queue": int}, {"queue": "str"}, {"n": range(0, 9, 2)}])
def test_a_wrong_list_of_them_is_refused(options):
    with pytest.raises(InvalidOption, match=r"register_executor\(\): options is"):
        register_executor("rocket", "moon.Rocket", options=options)


def test_the_app_of_an_executor_that_is_not_installed_is_named(monkeypatch):
    monkeypatch.delitem(module._executors, "celery", raising=False)
    with pytest.raises(InvalidOption, match=r"'celery', add 'scheduler\.contrib\.celery' to INSTALLED_APPS"):
        from_options({"executor": "celery"})
