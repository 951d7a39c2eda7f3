"""A wall clock that the controller can set, for one process or for all. The monotonic clock stays as it is."""

import os
from datetime import datetime, timedelta
from pathlib import Path

from scheduler.clock import SystemClock

WHOSE = os.environ.get("FAULTS_CLOCK") or os.environ.get("FAULTS_INDEX", "none")
PATH = Path(os.environ["FAULTS_FOLDER"]) / f"offset-{WHOSE}"


def offset() -> float:
    """Return how many seconds this process's wall clock is ahead of the true one."""
    try:
        return float(PATH.read_text() or 0)
    except OSError:
        return 0.0


def install() -> None:
    """Let the app read the false clock."""
    real_now = SystemClock.now

    def now(self: SystemClock) -> datetime:
        return real_now(self) + timedelta(seconds=offset())

    SystemClock.now = now  # type: ignore[method-assign]
