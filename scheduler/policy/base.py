"""The policies of one job as one value."""

from dataclasses import dataclass, field, fields
from datetime import datetime, time, timedelta
from enum import StrEnum
from typing import Any

from scheduler.exceptions import InvalidOption
from scheduler.policy.backoff import Backoff, Steps
from scheduler.policy.executor_options import ExecutorOptions, refuse_options
from scheduler.policy.misfire import Misfire
from scheduler.policy.notify import Events
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


class GateClosed(StrEnum):
    """What becomes of a slot whose gate is closed: it is skipped, or its gate is asked again until it opens."""

    AUTO = "auto"
    """Wait where the schedule counts from completion, which has no next slot to wait for; skip elsewhere."""
    SKIP = "skip"
    WAIT = "wait"

    def waits(self, *, from_completion: bool) -> bool:
        """Return whether a slot of such a schedule waits for its gate."""
        return from_completion if self is GateClosed.AUTO else self is GateClosed.WAIT


MAX_LOST_ATTEMPTS = 3
"""A slot is tried this often when its process keeps dying, so that a task that kills its process cannot loop."""


LEAST = {"max_concurrent": 1, "max_catch_up": 1, "retries": 0, "breaker_threshold": 1, "max_runs": 1, "notify_after": 1}
NOT_ZERO = dict.fromkeys(("timeout", "stuck_after", "fresh"), ", or None for no limit") | {"handover_timeout": ""}
MOST_RETRIES = 10_000
"""The attempts of a slot are counted in columns that hold some more."""


NOT_FOR_USERS = frozenset(
    (
        "breaker_probe_after", "breaker_threshold", "catch_up_window", "ends_at", "fresh", "grace", "max_catch_up",
        "max_runs", "misfire", "notify_after", "rate_limit", "starts_at", "succeed_by", "timeout",
    )
)  # fmt: skip
"""Policies of slots that time makes, or of which an `OnActivity` says its own."""


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
    gate_closed: GateClosed = GateClosed.AUTO
    rate_limit: RateLimit | None = None
    starts_at: datetime | None = None
    ends_at: datetime | None = None
    max_runs: int | None = None
    fresh: timedelta | None = None
    succeed_by: time | None = None
    notify_after: int | None = None
    notify: Events | None = None
    render_kwargs: bool = False
    executor: str = "thread"
    executor_options: ExecutorOptions = field(default_factory=ExecutorOptions)
    handover_timeout: timedelta = timedelta(minutes=10)

    def __post_init__(self) -> None:
        for name, least in LEAST.items():
            value = getattr(self, name)
            if value is not None and value < least:
                raise InvalidOption(f"{name} is {value}; it must be {least} or more.")
        if self.retries > MOST_RETRIES:
            raise InvalidOption(f"retries is {self.retries}; it must be {MOST_RETRIES} or less.")
        for name, or_none in NOT_ZERO.items():
            if getattr(self, name) == timedelta(0):
                raise InvalidOption(f"{name} is 0; give a duration{or_none}.")
        if self.starts_at and self.ends_at and self.ends_at < self.starts_at:
            raise InvalidOption("ends_at is before starts_at.")
        refuse_options(self.executor, self.executor_options)
        if self.max_concurrent > 1 and self.overlap is not Overlap.ALLOW:
            raise InvalidOption('max_concurrent above 1 needs overlap="allow".')

    @property
    def expects(self) -> str:
        """The option by which a success is expected, `fresh` or `succeed_by`; empty where none is."""
        return "fresh" if self.fresh is not None else "succeed_by" if self.succeed_by is not None else ""


DEFAULT_POLICY = Policy()


def differences(policy: Policy) -> dict[str, Any]:
    """Return the fields in which `policy` differs from the defaults."""
    return {name: getattr(policy, name) for name in options_that_differ(DEFAULT_POLICY, policy)}


def options_that_differ(one: Policy, other: Policy) -> list[str]:
    """Return the names of the fields in which two policies differ."""
    return [f.name for f in fields(Policy) if getattr(one, f.name) != getattr(other, f.name)]
