"""What a call may cost: seconds of its thread, of which a busy machine gives it more."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import thread_time

YARDSTICK = 0.0065
"""What `_yardstick` takes on an idle machine."""


@contextmanager
def quick(seconds: float) -> Iterator[None]:
    """Fail when a block costs its thread more seconds than that, on a machine that is idle.

    Others on the machine make each step slower, by their use of its caches and its memory: what a block took is
    compared with what a known piece of work takes at the same time.
    """
    began = thread_time()
    yield
    spent = thread_time() - began
    if spent >= seconds:
        allowed = seconds * max(1.0, _slowness())
        assert spent < allowed, f"{spent:.3f} s of this thread, and {allowed:.3f} s are allowed"


def quick_at_best(seconds: float, call: Callable[[], object], *, tries: int = 5) -> None:
    """Fail when none of some calls is quick: one may meet a collection of garbage, or a moment of a busy machine."""
    for left in reversed(range(tries)):
        try:
            with quick(seconds):
                call()
            return
        except AssertionError:
            if not left:
                raise


def _slowness() -> float:
    return max(_yardstick() for _ in range(5)) / YARDSTICK


def _yardstick() -> float:
    """Compute, and touch memory that is new."""
    began = thread_time()
    total = 0
    for number in range(200_000):
        total += number
    assert len(b"x" * 20_000_000) < total
    return thread_time() - began
