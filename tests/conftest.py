"""What all floors share. Unit and integration tests must not sleep: they are told the time."""

import sys
import time
from pathlib import Path

import pytest

pytest_plugins = ["scheduler.testing", "tests.redis_server"]

ROOT = Path(__file__).resolve().parent.parent
QUICK_FLOORS = (ROOT / "tests" / "unit", ROOT / "tests" / "integration")
OURS = (str(ROOT / "scheduler"), str(ROOT / "tests"))


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
