"""Options: what TASKS, and `@task`, say of how tasks run, as the policy of the job that carries them."""

from collections.abc import Iterator, Mapping
from typing import Any

from scheduler.arguments import checked_whole, did_you_mean
from scheduler.exceptions import InvalidOption
from scheduler.policy import Policy
from scheduler.policy.codec import from_options
from scheduler.safetext import shown

OF_POLICY = ("max_attempts", "backoff", "timeout", "on_lost")
KNOWN = (*OF_POLICY, "max_concurrent", "store")
OF_TASK = ("max_attempts", "backoff", "timeout")
"""What `@task` takes, too."""
STORE = 1_000_000
"""Bytes of JSON that a return value may have, unless OPTIONS say otherwise."""
UNLIMITED = 1_000_000
"""Runs of one function at once: queues are limited, functions are not."""
MOST_STORED = 100_000_000


def policy_of(options: Mapping[str, Any], own: Mapping[str, Any]) -> Policy:
    """Return the policy that the options of a backend and those of a task make; raises InvalidOption."""
    given = {name: options[name] for name in OF_POLICY if name in options}
    given |= own
    attempts = checked_whole("max_attempts", given.pop("max_attempts", 1))
    if attempts < 1:
        raise InvalidOption(f"max_attempts is {attempts}; it must be at least 1.")
    fixed = {"overlap": "allow", "max_concurrent": UNLIMITED, "breaker_threshold": None, "retries": attempts - 1}
    return from_options({"on_lost": "skip", **given, **fixed})


def stored_bytes(options: Mapping[str, Any]) -> int:
    """Return how many bytes of JSON a return value may have; raises InvalidOption."""
    return _at_least_one("store", options.get("store", STORE), MOST_STORED)


def own_options(task: object) -> dict[str, Any]:
    """Return what a task says itself: a task of this backend's class."""
    return {name: value for name in OF_TASK if (value := getattr(task, name, None)) is not None}


def wrong_options(options: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield what is wrong with OPTIONS: the name of the option, and the sentence."""
    for name in sorted(set(options) - set(KNOWN), key=str):
        hint = did_you_mean(name, KNOWN) or f" Known options: {', '.join(sorted(KNOWN))}."
        yield str(name), f"Unknown option {shown(name)}.{hint}"
    for name in KNOWN:
        if name in options and (why := _why_wrong(name, options[name])):
            yield name, why


def _why_wrong(name: str, value: Any) -> str:
    try:
        if name in OF_POLICY:
            policy_of({name: value}, {})
        elif name == "store":
            stored_bytes({name: value})
        elif value is not None:
            _at_least_one(name, value, UNLIMITED)
    except InvalidOption as error:
        return str(error)
    return ""


def _at_least_one(name: str, value: Any, most: int) -> int:
    number = checked_whole(name, value)
    if not 1 <= number <= most:
        raise InvalidOption(f"{name} is {number}; it must be from 1 to {most}.")
    return number
