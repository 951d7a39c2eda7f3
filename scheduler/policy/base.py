"""The policies of one job as one value."""

from dataclasses import dataclass, field, fields
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from scheduler.exceptions import InvalidOption
from scheduler.policy.backoff import Backoff, Steps
from scheduler.policy.misfire import Misfire
from scheduler.policy.overlap import Overlap
from scheduler.policy.ratelimit import RateLimit


class OnLost(StrEnum):
    """What becomes of a slot whose process died: run it again (at least once) or leave it (at most once)."""

    RETRY = "retry"
    SKIP = "skip"


class OnStuck(StrEnum):
    """What becomes of a stuck run: flag it and keep the overlap guard, or abandon it so that the job goes on."""

    FLAG = "flag"
    ABANDON = "abandon"


MAX_LOST_ATTEMPTS = 3
"""A slot is tried this often when its process keeps dying, so that a task that kills its process cannot loop."""


LEAST = {"max_concurrent": 1, "max_catch_up": 1, "retries": 0, "breaker_threshold": 1, "max_runs": 1}
MOST_RETRIES = 10_000
"""The attempts of a slot are counted in columns that hold some more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """How a job behaves: overlap, misfire, failure, time limits. Durations are `timedelta`; None means “no limit”."""

    overlap: Overlap = Overlap.SKIP
    max_concurrent: int = 1
    misfire: Misfire = Misfire.RUN_LATEST
    grace: timedelta | None = None
    catch_up_window: timedelta | None = None
    max_catch_up: int = 10
    backoff: Backoff = field(default_factory=Steps)
    retries: int = 0
    breaker_threshold: int | None = 5
    breaker_probe_after: timedelta | None = None
    on_lost: OnLost = OnLost.RETRY
    timeout: timedelta | None = None
    stuck_after: timedelta | None = timedelta(hours=2)
    on_stuck: OnStuck = OnStuck.FLAG
    rate_limit: RateLimit | None = None
    starts_at: datetime | None = None
    ends_at: datetime | None = None
    max_runs: int | None = None
    render_kwargs: bool = False
    executor: str = "thread"

    def __post_init__(self) -> None:
        for name, least in LEAST.items():
            value = getattr(self, name)
            if value is not None and value < least:
                raise InvalidOption(f"{name} is {value}; it must be {least} or more.")
        if self.retries > MOST_RETRIES:
            raise InvalidOption(f"retries is {self.retries}; it must be {MOST_RETRIES} or less.")
        for name in ("timeout", "stuck_after"):
            if getattr(self, name) == timedelta(0):
                raise InvalidOption(f"{name} is 0; give a duration, or None for no limit.")
        if self.starts_at and self.ends_at and self.ends_at < self.starts_at:
            raise InvalidOption("ends_at is before starts_at.")
        if self.max_concurrent > 1 and self.overlap is not Overlap.ALLOW:
            raise InvalidOption('max_concurrent above 1 needs overlap="allow".')


DEFAULT_POLICY = Policy()


def differences(policy: Policy) -> dict[str, Any]:
    """Return the fields in which `policy` differs from the defaults."""
    names = (f.name for f in fields(policy))
    return {name: value for name in names if (value := getattr(policy, name)) != getattr(DEFAULT_POLICY, name)}
