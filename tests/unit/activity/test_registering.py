"""Tasks for users: what their registration refuses, and where it says so."""

from functools import partial

import pytest

from scheduler.exceptions import InvalidOption
from scheduler.registry import Registry, register
from scheduler.schedules import OnActivity


def put(function, tasks=None, **options):
    register("summary", schedule=OnActivity(60), into=Registry() if tasks is None else tasks, **options)(function)


@pytest.mark.parametrize(
    "function",
    [
        lambda user_id, device_id, agent_id: None,
        lambda user_id, **more: None,
        lambda **ids: None,
        lambda user_id, device_id, agent_id, size=1: None,
        partial(lambda size, user_id, device_id, agent_id: None, 1),
        dict,
    ],
    ids=["the three", "one and more", "any", "with a default", "partial", "a type"],
)
def test_what_takes_the_ids_of_a_user_is_taken(function):
    put(function)


@pytest.mark.parametrize(
    "function",
    [lambda: None, lambda user_id: None, lambda user_id, device_id, agent_id, size: None],
    ids=["none", "one", "one more"],
)
def test_what_cannot_be_called_with_the_ids_of_a_user_is_refused_with_its_place(function):
    with pytest.raises(InvalidOption, match=r"test_registering.py:\d+: .* user_id, device_id and agent_id"):
        put(function)


def test_the_context_comes_first_and_own_arguments_count():
    put(lambda context, size, user_id, device_id, agent_id: None, takes_context=True, kwargs={"size": 1})


@pytest.mark.parametrize(
    "options", [{"timeout": 5}, {"breaker_threshold": 2}, {"misfire": "skip"}, {"rate_limit": "1/h"}, {"max_runs": 1}]
)
def test_an_option_without_a_meaning_is_refused(options):
    with pytest.raises(InvalidOption, match=f"{next(iter(options))} has no meaning with OnActivity"):
        put(lambda **ids: None, **options)


@pytest.mark.parametrize(
    "options",
    [{"executor": "process"}, {"retries": 2, "backoff": 5}, {"overlap": "allow", "max_concurrent": 2}, {"group": "g"}],
)
def test_other_options_mean_what_they_always_mean(options):
    put(lambda **ids: None, **options)
