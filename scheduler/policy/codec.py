"""Policies as options and as JSON: what people write in `@register`, and what stands in the database."""

import json
from collections.abc import Callable, Mapping
from dataclasses import fields
from datetime import datetime, time, timedelta
from enum import StrEnum
from functools import lru_cache
from types import NoneType
from typing import Any, TypeVar, get_args, get_type_hints

from scheduler.arguments import checked_flag, checked_instant, checked_whole, did_you_mean
from scheduler.exceptions import InvalidOption
from scheduler.policy.backoff import MOST_STEPS, Backoff, Exponential, Steps
from scheduler.policy.base import Policy, differences
from scheduler.policy.executor import executor_named
from scheduler.policy.executor_options import ExecutorOptions
from scheduler.policy.notify import Events
from scheduler.policy.ratelimit import RateLimit
from scheduler.safetext import shown
from scheduler.schedules import parse_duration
from scheduler.schedules.instants import instant_text

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
    hint = did_you_mean(name, _READERS) or f" Known options: {', '.join(sorted(_READERS))}."
    raise InvalidOption(f"Unknown option {shown(name)}.{hint}")


def to_json(policy: Policy) -> str:
    """Return the compact JSON that stands in the database: only what differs from the defaults."""
    values = {name: plain(value) for name, value in differences(policy).items()}
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


def plain(value: Any) -> Any:
    """Return the value of an option as JSON has it."""
    match value:
        case timedelta():
            return value.total_seconds()
        case datetime():
            return instant_text(value)
        case time():
            return clock_text(value)
        case RateLimit():
            return str(value)
        case Events():
            return list(value.names)
        case ExecutorOptions():
            return value.values
        case Steps():
            return [step.total_seconds() for step in value.steps]
        case Exponential():
            return {"base": value.base.total_seconds(), "factor": value.factor, "cap": value.cap.total_seconds()}
    return value


def _duration(name: str, value: Any) -> timedelta:
    try:
        duration: timedelta = parse_duration(value)
    except (ValueError, TypeError, OverflowError) as error:
        raise InvalidOption(f"{name} is {shown(value)}; write seconds, a timedelta or text such as '1h30m'.") from error
    if duration < timedelta(0):
        raise InvalidOption(f"{name} is {shown(value)}; it cannot be negative.")
    return duration


def _instant(name: str, value: Any) -> datetime:
    try:
        at = value if isinstance(value, datetime) else datetime.fromisoformat(value)
    except (ValueError, TypeError):
        raise InvalidOption(
            f"{name} is {shown(value)}; write an instant such as '2027-01-01T00:00:00+00:00'."
        ) from None
    return checked_instant(name, at)


def clock_text(clock: time) -> str:
    """Return a time of day as it is written: `06:00`, with seconds where it has some."""
    return clock.isoformat("seconds" if clock.second else "minutes")


def _clock(name: str, value: Any) -> time:
    try:
        clock = value if isinstance(value, time) else time.fromisoformat(value if ":" in value else "")
    except (ValueError, TypeError):
        raise InvalidOption(f"{name} is {shown(value)}; write a time of day such as '06:00'.") from None
    if clock.tzinfo is not None:
        raise InvalidOption(f"{name} is {shown(value)}; write it without a zone: that of the job's schedule holds.")
    return clock.replace(microsecond=0)


def _rate(name: str, value: Any) -> RateLimit:
    return value if isinstance(value, RateLimit) else RateLimit.parse(str(value))


def _choice(kind: type[E]) -> Callable[[str, Any], E]:
    def read(name: str, value: Any) -> E:
        try:
            return kind(str(value).lower())
        except ValueError:
            names = ", ".join(repr(str(member)) for member in kind)
            raise InvalidOption(f"{name} is {shown(value)}; it must be one of {names}.") from None

    return read


def _optional(read: Callable[[str, Any], T]) -> Callable[[str, Any], T | None]:
    return lambda name, value: None if value is None else read(name, value)


def _backoff(name: str, value: Any) -> Backoff:
    steps = value.steps if isinstance(value, Steps) else value
    if isinstance(steps, list | tuple) and len(steps) > MOST_STEPS:
        raise InvalidOption(
            f"{name} has {len(steps)} steps; at most {MOST_STEPS} are allowed, and the last one repeats."
        )
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
        raise InvalidOption(f"{name} is {shown(dict(value))}; write {{'base': 60, 'factor': 2, 'cap': 3600}}.")
    factor = value.get("factor", 2.0)
    if isinstance(factor, bool) or not isinstance(factor, int | float) or not 1 <= factor <= 1000:
        raise InvalidOption(f"{name}: factor is {shown(factor)}; it must be a number from 1 to 1000.")
    return Exponential(_duration(name, value["base"]), float(factor), _duration(name, value.get("cap", 3600)))


_OF_TYPE: dict[Any, Callable[[str, Any], Any]] = {
    int: checked_whole,
    bool: checked_flag,
    timedelta: _duration,
    datetime: _instant,
    time: _clock,
    Events: lambda name, value: Events.parse(value, of=name),
    RateLimit: _rate,
    ExecutorOptions: lambda name, value: ExecutorOptions.parse(value, of=name),
    Backoff: _backoff,
}
_OWN: dict[str, Callable[[str, Any], Any]] = {"executor": lambda name, value: executor_named(value).name}


def kind_of(name: str, policy: type[Any] = Policy) -> tuple[Any, bool]:
    """Return the type of an option, and whether it may be None."""
    hint = get_type_hints(policy)[name]
    kinds = get_args(hint)
    return (next(kind for kind in kinds if kind is not NoneType), True) if kinds else (hint, hint is Backoff)


def _reader(name: str) -> Callable[[str, Any], Any]:
    if name in _OWN:
        return _OWN[name]
    kind, optional = kind_of(name)
    read = _OF_TYPE.get(kind) or _choice(kind)
    return _optional(read) if optional and kind is not Backoff else read


_READERS = {one.name: _reader(one.name) for one in fields(Policy)}
