"""Schedules and policies as the text that is stored. Reading never raises: a row that cannot be read stops no other."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

from scheduler.exceptions import ConfigurationError
from scheduler.policy import Policy
from scheduler.policy import codec as policies
from scheduler.schedules import Schedule, parse


@dataclass(frozen=True, slots=True)
class Unreadable:
    """What stands in the database cannot be understood; `error` says why. Nothing is known of such a schedule."""

    kind: ClassVar[str] = ""
    slots: ClassVar[None] = None
    parents: ClassVar[tuple[str, ...]] = ()
    is_dependent: ClassVar[bool] = False
    is_interval: ClassVar[bool] = False
    from_completion: ClassVar[bool] = False
    for_users: ClassVar[bool] = False
    breaker_probe_after: ClassVar[None] = None

    text: str
    error: str

    def __str__(self) -> str:
        return self.text


def read_schedule(text: str) -> Schedule | Unreadable:
    """Return the schedule a text means; the same text gives the same object, so that plans are cheap.

    What cannot be read now (a time zone that this host lacks) may be readable later, and is asked again.
    """
    try:
        return _parsed(text)
    except (ConfigurationError, ValueError, TypeError, KeyError, OverflowError) as error:
        return Unreadable(text, str(error))


_parsed = lru_cache(maxsize=4096)(parse)


@lru_cache(maxsize=4096)
def write_schedule(schedule: Schedule) -> str:
    """Return the JSON text of a schedule, the same for equal schedules."""
    return json.dumps(schedule.to_dict(), sort_keys=True, separators=(",", ":"))


_policy_of = lru_cache(maxsize=4096)(policies.from_json)


def read_policy(text: str) -> Policy | Unreadable:
    """Return the policy a text means."""
    try:
        return _policy_of(text)
    except (ConfigurationError, ValueError, TypeError) as error:
        return Unreadable(text, str(error))


def meant_schedule(value: Any) -> Any:
    """Return the schedule that a text or a mapping means, everything else as it is; raises InvalidSchedule."""
    return parse(value) if isinstance(value, str | Mapping) else value


def meant_policy(value: Any) -> Any:
    """Return the policy that JSON or a mapping of options means, everything else as it is; raises InvalidOption."""
    if isinstance(value, str):
        return policies.from_json(value)
    return policies.from_options(value) if isinstance(value, Mapping) else value
