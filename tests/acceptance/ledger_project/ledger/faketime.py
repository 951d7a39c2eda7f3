"""A wall clock that a test can set, for all processes of the project at once."""

from datetime import timedelta
from pathlib import Path

from scheduler.clock import SystemClock


def install(path: Path) -> None:
    """Add the seconds that stand in the file to the wall clock; without a file nothing changes."""
    if not path.exists():
        return
    real_now = SystemClock.now
    SystemClock.now = lambda self: real_now(self) + timedelta(seconds=float(path.read_text()))  # type: ignore[method-assign]
