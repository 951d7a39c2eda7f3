"""Options: what `@register`, `add_job` and `update_job` take, for type checkers and completion."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, time, timedelta
from typing import Any, Literal, TypedDict

from scheduler.arguments import did_you_mean
from scheduler.exceptions import InvalidOption
from scheduler.policy import Misfire, OnLost, OnStuck, Overlap
from scheduler.policy.backoff import Backoff
from scheduler.policy.base import GateClosed
from scheduler.policy.executor_options import ExecutorOptions
from scheduler.policy.notify import Events
from scheduler.policy.ratelimit import RateLimit
from scheduler.safetext import shown
from scheduler.schedules import Schedule

Duration = float | timedelta | str
"""Seconds, a timedelta, or text such as `1h30m`."""
ScheduleLike = Schedule | str | Mapping[str, Any] | timedelta
"""A schedule, its text form, its JSON form, or an interval."""


class Options(TypedDict, total=False):
    """The options of the policy; what each means stands in docs/reference/options.md."""

    overlap: Literal["skip", "queue_one", "allow", "replace"] | Overlap
    max_concurrent: int
    misfire: Literal["run_latest", "skip", "run_all"] | Misfire
    grace: Duration | None
    catch_up_window: Duration | None
    max_catch_up: int
    backoff: Duration | Sequence[Duration] | Mapping[str, Any] | Backoff | None
    retries: int
    breaker_threshold: int | None
    breaker_probe_after: Duration | None
    on_lost: Literal["retry", "skip"] | OnLost
    timeout: Duration | None
    stuck_after: Duration | None
    on_stuck: Literal["flag", "abandon"] | OnStuck
    gate_closed: Literal["auto", "skip", "wait"] | GateClosed
    rate_limit: str | RateLimit | None
    starts_at: datetime | str | None
    ends_at: datetime | str | None
    max_runs: int | None
    fresh: Duration | None
    succeed_by: time | str | None
    notify_after: int | None
    notify: Collection[str] | str | Events | None
    render_kwargs: bool
    executor: str
    executor_options: Mapping[str, Any] | str | ExecutorOptions | None
    handover_timeout: Duration


class Given(Options, total=False):
    """What `add_job` takes: the options, and what a job has beside them."""

    kwargs: Mapping[str, Any] | None
    enabled: bool
    description: str
    group: str
    priority: int


class Changes(Given, total=False):
    """What `update_job` takes."""

    task: str
    schedule: ScheduleLike


def refuse_unknown(given: Collection[str], parameters: Collection[str] = ()) -> None:
    """Raise InvalidOption for a name that is no option, and none of the parameters: those may have been meant too."""
    known = sorted({*parameters, *Options.__annotations__})
    for name in given:
        if name not in known:
            hint = did_you_mean(name, known) or f" Known options: {', '.join(known)}."
            raise InvalidOption(f"Unknown option {shown(name)}.{hint}")
