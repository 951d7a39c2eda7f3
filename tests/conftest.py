"""What all floors share. Unit and integration tests must not sleep: they are told the time."""

import logging
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest_plugins = ["scheduler.testing", "tests.bytecode", "tests.redis_server", "tests.sweeps"]

ROOT = Path(__file__).resolve().parent.parent
QUICK_FLOORS = (ROOT / "tests" / "unit", ROOT / "tests" / "integration")
OURS = (str(ROOT / "scheduler"), str(ROOT / "tests"))


def pytest_configure() -> None:
    """Keep out of the records of a test what asyncio says when it collects a task of an earlier one."""
    said = ("never retrieved", "was destroyed but it is pending")
    logging.getLogger("asyncio").addFilter(lambda record: not any(words in record.getMessage() for words in said))


@pytest.fixture(autouse=True)
def no_sleep(request, monkeypatch):
    """Fail a quick test in which our code, or the test itself, sleeps."""
    if not any(request.path.is_relative_to(floor) for floor in QUICK_FLOORS):
        return
    really_sleep = time.sleep  # noqa: TID251 - kept for the standard library, whose waits are not ours

    def refuse(seconds: float) -> None:
        caller = sys._getframe(1).f_code.co_filename
        if caller.startswith(OURS):
            pytest.fail(f"{caller} sleeps; tests of this floor must not.")
        really_sleep(seconds)

    monkeypatch.setattr(time, "sleep", refuse)


@pytest.fixture(autouse=True)
def own_registry() -> Iterator[None]:
    """Forget after a test what it registers: the jobs of a later one would be among others."""
    from scheduler.registry import registry

    before = set(registry.names())
    yield
    for name in set(registry.names()) - before:
        registry.remove(name)
