"""Sweeps: tests of very many cases. Unless `--full` is given, a sample of each is run, and no thorough test at all.

A thorough test costs much, or a process of its own, beside others that show nearly the same. `.ci/run` runs all."""

from collections import defaultdict
from math import gcd

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--full", action="store_true", help="run all cases of the sweeps, not a sample")
    parser.addoption("--every-request", action="store_true", help="send every request of the crawls, not a sample")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "sweep(one_in): of its cases, one in so many is run unless --full is given")
    config.addinivalue_line("markers", "thorough: is run only when --full is given")


@pytest.hookimpl(tryfirst=True)  # before they are shuffled, so that each worker and each run takes the same ones
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("full"):
        return
    sample = chosen(items)
    config.hook.pytest_deselected(items=[item for item in items if item not in sample])
    items[:] = [item for item in items if item in sample]


def chosen(items: list[pytest.Item]) -> set[pytest.Item]:
    """Return what is no sweep and not thorough, and of each sweep its first case and every n-th after that."""
    sample, seen = set(), defaultdict(int)
    for item in items:
        sweep = item.get_closest_marker("sweep")
        test = item.nodeid.partition("[")[0]
        if item.get_closest_marker("thorough"):
            continue
        if sweep is None or seen[test] % step(item, *sweep.args) == 0:
            sample.add(item)
        seen[test] += 1
    return sample


def step(item: pytest.Item, one_in: int) -> int:
    """Return it when, of several parameters, each value of each is met by such steps."""
    lengths = [len(mark.args[1]) for mark in item.iter_markers("parametrize")]
    if len(lengths) > 1 and any(length and gcd(length, one_in) > 1 for length in lengths):
        raise pytest.UsageError(f"{item.nodeid}: one in {one_in} does not meet each of {lengths} values")
    return one_in
