"""Breaker: stop a job that keeps failing, once and loudly."""

from enum import Enum, auto


class BreakerVerdict(Enum):
    """What an outcome does to the breaker of a job."""

    UNCHANGED = auto()
    TRIPPED = auto()
    RECOVERED = auto()


def judge(*, failed: bool, broken: bool, consecutive_failures: int, threshold: int | None) -> BreakerVerdict:
    """Decide after a counted run ended, `consecutive_failures` including it. `threshold=None` never trips."""
    if not failed:
        return BreakerVerdict.RECOVERED if broken else BreakerVerdict.UNCHANGED
    if not broken and threshold is not None and consecutive_failures >= threshold:
        return BreakerVerdict.TRIPPED
    return BreakerVerdict.UNCHANGED
