"""The names of executors stand in one place, and everything else is made of them."""

import pytest

from scheduler.exceptions import ConfigurationError, InvalidOption
from scheduler.executors.base import load
from scheduler.policy import executor as module
from scheduler.policy.codec import from_options
from scheduler.policy.executor import Executor, executor_named, executors, register_executor


@pytest.fixture
def own_executors(monkeypatch):
    monkeypatch.setattr(module, "_executors", dict(module._executors))


ROCKET = Executor("rocket", "a rocket", "moon.Rocket")


def register_rocket(place="moon"):
    register_executor("rocket", f"{place}.Rocket", label="a rocket")


def test_a_name_that_is_registered_is_a_value_of_the_option(own_executors):
    register_rocket()
    assert from_options({"executor": "rocket"}).executor == "rocket"
    assert executor_named("rocket") == ROCKET


@pytest.mark.parametrize("name", ["rocket", None, 3, ["thread"]])
def test_another_one_is_refused_with_the_known_ones(name):
    with pytest.raises(InvalidOption, match=r"executor is .*; it must be one of 'thread', 'process'"):
        from_options({"executor": name})


def test_a_name_is_registered_once_and_the_same_again_is_no_error(own_executors):
    register_rocket()
    register_rocket()
    with pytest.raises(InvalidOption, match=r"another executor 'rocket': moon\.Rocket"):
        register_rocket("mars")


@pytest.mark.parametrize("name", ["", "x" * 41, 3])
def test_a_name_that_no_column_holds_is_refused(own_executors, name):
    with pytest.raises(InvalidOption, match="1 to 40 characters"):
        register_executor(name, "moon.Rocket")


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        *(("name", value) for value in ("", 3, None, "rocket\n\x1b", " rocket", "rocket ")),
        *(("implementation", value) for value in (object, None, 5, "", "Rocket", ".Rocket", "moon.", "moon/Rocket.py")),
        *(("label", value) for value in (5, None, "a\nrocket", "\x1b[31m")),
        *(("on_loop", value) for value in (1, None, "yes")),
        *(("hands_over", value) for value in (1, None, "yes")),
    ],
)
def test_a_wrong_argument_is_refused_at_once_by_its_name(own_executors, argument, value):
    given = {"name": "rocket", "implementation": "moon.Rocket"} | {argument: value}
    with pytest.raises(InvalidOption, match=rf"register_executor\(\): {argument} is .*; it must be ") as refused:
        register_executor(**given)
    assert str(refused.value).isprintable()
    assert "rocket" not in module._executors


def test_what_is_handed_over_goes_on_no_loop_here(own_executors):
    with pytest.raises(InvalidOption, match="on_loop is True; it must be False with hands_over=True"):
        register_executor("rocket", "moon.Rocket", on_loop=True, hands_over=True)


def test_what_cannot_be_imported_is_said_with_its_place():
    with pytest.raises(ConfigurationError, match=r"executor 'rocket' cannot be loaded from 'moon\.Rocket'"):
        load(ROCKET)


class Sinking:
    def __init__(self):
        raise KeyError("no fuel")


def test_whatever_its_making_raises_is_said_with_its_place():
    with pytest.raises(ConfigurationError, match=r"'rocket' cannot be loaded from '.*Sinking': KeyError: 'no fuel'"):
        load(Executor("rocket", "a rocket", f"{__name__}.Sinking"))


@pytest.mark.parametrize("executor", executors(), ids=lambda one: one.name)
def test_what_carries_out_runs_is_there(executor):
    assert callable(load(executor).call)
