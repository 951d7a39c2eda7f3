"""Time as the fault suite sees it: its own witness, apart from the clock of the app."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def wall() -> float:
    """Return the true wall clock, in seconds since 1970."""
    return time.time()  # noqa: TID251


def mono() -> float:
    """Return the monotonic clock, which all processes of this machine share."""
    return time.monotonic()  # noqa: TID251


def pause(seconds: float) -> None:
    """Let a fault last, or a round go on."""
    time.sleep(max(0.0, seconds))  # noqa: TID251


def wait_for(condition: Callable[[], T], seconds: float, every: float = 0.1) -> T:
    """Return the first true value of `condition`, or its last one after `seconds`."""
    end = mono() + seconds
    while not (value := condition()) and mono() < end:
        pause(every)
    return value
