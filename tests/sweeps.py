"""Sweeps: tests of many cases. Unless `--full` is given, a sample of each is run, and no thorough test at all.

What has more than `MANY` cases is a sweep, where the README's command runs it; a mark says otherwise how many are run.
Of integration tests, which cost most, the first case and the last are run: these differ in each parameter.
What a test plays many times, it plays fewer times by the fixture `size`.
A thorough test costs much, or a process of its own, beside others that show nearly the same. `.ci/run` runs all."""

from collections import defaultdict
from collections.abc import Sized
from math import gcd
from pathlib import Path
from typing import Protocol

import pytest

QUICK_FLOORS = [Path(__file__).parent / floor for floor in ("unit", "contract", "integration", "docs")]
INTEGRATION = Path(__file__).parent / "integration"
MANY = 5
STEPS = (3, 5, 7, 11)
"""One in so many cases of a sweep is run: the first of these by which each value of each parameter is met."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--full", action="store_true", help="run all cases of the sweeps, not a sample")
    parser.addoption("--every-request", action="store_true", help="send every request of the crawls, not a sample")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "sweep(one_in): of its cases, one in so many is run unless --full is given")
    config.addinivalue_line("markers", "thorough: is run only when --full is given")


class Size(Protocol):
    def __call__(self, number: int, *, quick: int) -> int: ...


@pytest.fixture
def size(request: pytest.FixtureRequest) -> Size:
    """Say how much a test plays: `size(1000, quick=40)` is 40 unless `--full` is given."""
    full = request.config.getoption("full")
    return lambda number, *, quick: number if full else quick


@pytest.hookimpl(tryfirst=True)  # before they are shuffled, so that each worker and each run takes the same ones
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("full"):
        return
    sample = chosen(items)
    config.hook.pytest_deselected(items=[item for item in items if item not in sample])
    items[:] = [item for item in items if item in sample]


def chosen(items: list[pytest.Item]) -> set[pytest.Item]:
    """Return what is not thorough: all cases of a test that is no sweep, else a sample of them."""
    sample, tests = set(), defaultdict(list)
    for item in items:
        tests[test_of(item)].append(item)
    for cases in tests.values():
        sample.update(item for item in sample_of(cases) if not item.get_closest_marker("thorough"))
    return sample


def sample_of(cases: list[pytest.Item]) -> list[pytest.Item]:
    """Return the first case of a test and every n-th after that, or its two ends."""
    if cases[0].path.is_relative_to(INTEGRATION) and not cases[0].get_closest_marker("sweep"):
        quick = [item for item in cases if not item.get_closest_marker("thorough")]
        return [quick[0], quick[-1]] if len(quick) > 1 else quick
    return cases[:: step(cases[0], len(cases))]  # asked once for a test: there are ten thousand cases


def test_of(item: pytest.Item) -> str:
    return item.nodeid.partition("[")[0]


def step(item: pytest.Item, cases: int) -> int:
    """Return that one in so many cases of a test is run; by such steps each value of several parameters is met."""
    sweep = item.get_closest_marker("sweep")
    is_many = cases > MANY and any(item.path.is_relative_to(floor) for floor in QUICK_FLOORS)
    values = [mark.args[1] for mark in item.iter_markers("parametrize")]
    lengths = [len(some) for some in values if isinstance(some, Sized) and len(some)]
    short = [one for one in STEPS if len(lengths) < 2 or one < min(lengths)]  # a longer one steps over values
    steps = sweep.args if sweep else short if is_many else (1,)
    meeting = [one for one in steps if len(lengths) < 2 or all(gcd(length, one) == 1 for length in lengths)]
    if not meeting and sweep:
        raise pytest.UsageError(f"{item.nodeid}: one in {steps[0]} does not meet each of {lengths} values")
    return meeting[0] if meeting else 1
