"""A wall clock that the controller can set, for one process or for all. The monotonic clock stays as it is."""

import os
from datetime import datetime, timedelta
from pathlib import Path

from scheduler.clock import SystemClock

WHOSE = os.environ.get("FAULTS_CLOCK") or os.environ.get("FAULTS_INDEX", "none")
FILE = os.open(Path(os.environ["FAULTS_FOLDER"]) / f"offset-{WHOSE}", os.O_RDONLY | os.O_CREAT, 0o644)
"""Open from the beginning, so that a process without free descriptors still sees its clock."""


def offset() -> float:
    """Return how many seconds this process's wall clock is ahead of the true one."""
    return float(os.pread(FILE, 64, 0) or 0)


def install() -> None:
    """Let the app read the false clock."""
    real_now = SystemClock.now

    def now(self: SystemClock) -> datetime:
        return real_now(self) + timedelta(seconds=offset())

    SystemClock.now = now  # type: ignore[method-assign]
