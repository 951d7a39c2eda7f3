"""Policies as options and as JSON: what people write in `@register`, and what stands in the database."""

import json
from collections.abc import Callable, Mapping
from dataclasses import fields
from datetime import datetime, timedelta
from difflib import get_close_matches
from enum import StrEnum
from functools import lru_cache
from typing import Any, TypeVar

from scheduler.arguments import checked_flag, checked_instant, checked_whole
from scheduler.exceptions import InvalidOption
from scheduler.policy.backoff import Backoff, Exponential, Steps
from scheduler.policy.base import OnLost, OnStuck, Policy, differences
from scheduler.policy.misfire import Misfire
from scheduler.policy.overlap import Overlap
from scheduler.policy.ratelimit import RateLimit
from scheduler.schedules import parse_duration

E = TypeVar("E", bound=StrEnum)
T = TypeVar("T")


def from_options(options: Mapping[str, Any]) -> Policy:
    """Build a policy from loosely typed options; raises InvalidOption that names the option and the way out."""
    return Policy(**{name: read_option(name, value) for name, value in options.items()})


def read_option(name: str, value: Any) -> Any:
    """Return the value of one option as a policy has it; raises InvalidOption as `from_options` does."""
    if name in _READERS:
        try:
            return _READERS[name](name, value)
        except RecursionError:  # the message that refuses it cannot show it
            raise InvalidOption(f"{name} is a value that is too deeply nested.") from None
    near = get_close_matches(name, _READERS, n=1)
    hint = f" Did you mean {near[0]!r}?" if near else f" Known options: {', '.join(sorted(_READERS))}."
    raise InvalidOption(f"Unknown option {name!r}.{hint}")


def to_json(policy: Policy) -> str:
    """Return the compact JSON that stands in the database: only what differs from the defaults."""
    values = {name: _plain(value) for name, value in differences(policy).items()}
    return json.dumps(values, sort_keys=True, separators=(",", ":"))


@lru_cache(maxsize=4096)
def from_json(text: str) -> Policy:
    """Read what `to_json` wrote; raises InvalidOption when the text is not a policy."""
    try:
        options = json.loads(text or "{}")
    except (ValueError, RecursionError) as error:
        raise InvalidOption(f"The policy is not JSON: {error}.") from error
    if not isinstance(options, dict):
        raise InvalidOption("The policy must be a JSON object.")
    return from_options(options)


def _plain(value: Any) -> Any:
    match value:
        case timedelta():
            return value.total_seconds()
        case datetime():
            return value.isoformat()
        case RateLimit():
            return str(value)
        case Steps():
            return [step.total_seconds() for step in value.steps]
        case Exponential():
            return {"base": value.base.total_seconds(), "factor": value.factor, "cap": value.cap.total_seconds()}
    return value


def _duration(name: str, value: Any) -> timedelta:
    try:
        duration: timedelta = parse_duration(value)
    except (ValueError, TypeError, OverflowError) as error:
        raise InvalidOption(f"{name} is {value!r}; write seconds, a timedelta or text such as '1h30m'.") from error
    if duration < timedelta(0):
        raise InvalidOption(f"{name} is {value!r}; it cannot be negative.")
    return duration


def _instant(name: str, value: Any) -> datetime:
    try:
        at = value if isinstance(value, datetime) else datetime.fromisoformat(value)
    except (ValueError, TypeError):
        raise InvalidOption(f"{name} is {value!r}; write an instant such as '2027-01-01T00:00:00+00:00'.") from None
    return checked_instant(name, at)


def _rate(name: str, value: Any) -> RateLimit:
    return value if isinstance(value, RateLimit) else RateLimit.parse(str(value))


def _choice(kind: type[E]) -> Callable[[str, Any], E]:
    def read(name: str, value: Any) -> E:
        try:
            return kind(str(value).lower())
        except ValueError:
            names = ", ".join(repr(str(member)) for member in kind)
            raise InvalidOption(f"{name} is {value!r}; it must be one of {names}.") from None

    return read


def _optional(read: Callable[[str, Any], T]) -> Callable[[str, Any], T | None]:
    return lambda name, value: None if value is None else read(name, value)


def _backoff(name: str, value: Any) -> Backoff:
    match value:
        case Steps() | Exponential():
            return value
        case None:
            return Steps(())
        case Mapping():
            return _exponential(name, value)
        case list() | tuple():
            return Steps(tuple(_duration(name, step) for step in value))
    return Steps((_duration(name, value),))


def _exponential(name: str, value: Mapping[str, Any]) -> Exponential:
    unknown = set(value) - {"base", "factor", "cap"}
    if unknown or "base" not in value:
        raise InvalidOption(f"{name} is {dict(value)!r}; write {{'base': 60, 'factor': 2, 'cap': 3600}}.")
    factor = value.get("factor", 2.0)
    if isinstance(factor, bool) or not isinstance(factor, int | float) or not 1 <= factor <= 1000:
        raise InvalidOption(f"{name}: factor is {factor!r}; it must be a number from 1 to 1000.")
    return Exponential(_duration(name, value["base"]), float(factor), _duration(name, value.get("cap", 3600)))


def _executor(name: str, value: Any) -> str:
    if value not in EXECUTORS:
        raise InvalidOption(f"{name} is {value!r}; it must be one of {', '.join(map(repr, EXECUTORS))}.")
    return str(value)


EXECUTORS = ("thread", "process")

_READERS: dict[str, Callable[[str, Any], Any]] = {
    "overlap": _choice(Overlap),
    "max_concurrent": checked_whole,
    "misfire": _choice(Misfire),
    "grace": _optional(_duration),
    "catch_up_window": _optional(_duration),
    "max_catch_up": checked_whole,
    "backoff": _backoff,
    "retries": checked_whole,
    "breaker_threshold": _optional(checked_whole),
    "breaker_probe_after": _optional(_duration),
    "on_lost": _choice(OnLost),
    "timeout": _optional(_duration),
    "stuck_after": _optional(_duration),
    "on_stuck": _choice(OnStuck),
    "rate_limit": _optional(_rate),
    "starts_at": _optional(_instant),
    "ends_at": _optional(_instant),
    "max_runs": _optional(checked_whole),
    "render_kwargs": checked_flag,
    "executor": _executor,
}
assert set(_READERS) == {f.name for f in fields(Policy)}, "every policy field needs a reader"
