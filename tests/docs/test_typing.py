"""What type checkers know: this module is checked by mypy, which also reports an `ignore` that is not needed."""

from dataclasses import fields
from datetime import timedelta
from typing import assert_type

import pytest

import scheduler
from scheduler import Every, Task, get_tasks, register
from scheduler.exceptions import InvalidOption
from scheduler.options import Changes, Options
from scheduler.policy import Policy
from scheduler.registry import Registry


def test_the_options_are_those_of_the_policy() -> None:
    assert set(Options.__annotations__) == {field.name for field in fields(Policy)}
    assert set(Options.__annotations__) < set(Changes.__annotations__)


def test_register_takes_them_by_type() -> None:
    tasks = Registry()

    @register("a", schedule=timedelta(hours=1), retries=3, timeout="10m", overlap="allow", into=tasks)
    def plain() -> int:
        return 3

    register("b", Every(60), backoff=[30, "5m"], into=tasks)(plain)
    assert_type(plain(), int)
    assert tasks.get("a").schedule == Every(hours=1)


def test_and_no_others() -> None:
    with pytest.raises(InvalidOption):
        register("a", retriess=3, into=Registry())(test_and_no_others)  # type: ignore[call-arg]
    with pytest.raises(InvalidOption):
        register("a", overlap="skipp", into=Registry())(test_and_no_others)  # type: ignore[arg-type]


def test_tasks_are_a_mapping() -> None:
    assert_type(get_tasks(), dict[str, Task])


def test_the_package_tells_what_it_has_and_its_version() -> None:
    assert {"register", "Every", "get_tasks", "__version__"} <= set(dir(scheduler))
    assert scheduler.__version__.count(".") >= 1
