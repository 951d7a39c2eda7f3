"""Backoff: growing delays after failures, either listed step by step or computed, never overflowing."""

import math
from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol

DEFAULT_STEPS = tuple(timedelta(seconds=seconds) for seconds in (30, 60, 300, 900, 3600))
MOST_STEPS = 100


class Backoff(Protocol):
    """How long to wait after the n-th failure in a row."""

    def step(self, failures: int) -> timedelta:
        """Return the delay after `failures` consecutive failures (1 or more)."""
        ...


@dataclass(frozen=True, slots=True)
class Steps:
    """The delays written out; the last one repeats. No steps at all means no delay."""

    steps: tuple[timedelta, ...] = DEFAULT_STEPS

    def step(self, failures: int) -> timedelta:
        if not self.steps or failures < 1:
            return timedelta(0)
        return self.steps[min(failures, len(self.steps)) - 1]


@dataclass(frozen=True, slots=True)
class Exponential:
    """`base · factor^(n-1)`, at most `cap`. The exponent is bounded before the power is taken, so nothing overflows."""

    base: timedelta
    factor: float = 2.0
    cap: timedelta = timedelta(hours=1)

    def step(self, failures: int) -> timedelta:
        if failures < 1 or not self.base:
            return timedelta(0)
        if self.factor <= 1 or self.base >= self.cap:
            return min(self.base, self.cap)
        steps_to_cap = math.log(self.cap / self.base, self.factor)
        return min(self.cap, self.base * self.factor ** min(failures - 1, math.ceil(steps_to_cap)))
