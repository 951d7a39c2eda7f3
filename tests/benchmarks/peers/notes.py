"""What every peer runs: a call that notes when it was due and when it began, in a file that all processes append to."""

import os
import time
from functools import cache
from pathlib import Path


def noted(due: float) -> None:
    """Note the instant a call was due (seconds since 1970) and the present one."""
    os.write(_file(), f"{due!r} {time.time()!r}\n".encode())  # noqa: TID251


def notes() -> list[tuple[float, float]]:
    """Return all that was noted."""
    lines = _path().read_text().splitlines() if _path().exists() else []
    return [(float(due), float(began)) for due, began in map(str.split, lines)]


def forget() -> None:
    """Begin anew."""
    os.truncate(_file(), 0)


def _path() -> Path:
    return Path(os.environ["BENCH_FOLDER"]) / "notes"


@cache
def _file() -> int:
    return os.open(_path(), os.O_WRONLY | os.O_APPEND | os.O_CREAT)
