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


def wait_while_it_grows(count: Callable[[], int], goal: int, standstill: float, every: float = 0.5) -> int:
    """Return `count` once it has reached `goal`, or has stood still for so many seconds.

    How long much work takes says how fast the machine is; that it goes on is what is promised.
    """
    found, grew = count(), mono()
    while found < goal and mono() - grew < standstill:
        pause(every)
        now = count()
        if now != found:
            found, grew = now, mono()
    return found


def wait_for(condition: Callable[[], T], seconds: float, every: float = 0.1) -> T:
    """Return the first true value of `condition`, or its last one after `seconds`."""
    end = mono() + seconds
    while not (value := condition()) and mono() < end:
        pause(every)
    return value
