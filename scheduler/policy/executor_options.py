"""Executor options: what a job says to its executor, such as the queue its runs are sent to."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from scheduler.arguments import checked_number, checked_text, checked_whole, did_you_mean, json_of
from scheduler.exceptions import InvalidOption
from scheduler.policy.executor import Executor, executor_named
from scheduler.safetext import shown

LONGEST = 4_000
"""Characters of their JSON."""
LONGEST_TEXT = 255


@dataclass(frozen=True, slots=True)
class ExecutorOptions:
    """Options by name, kept as JSON: a policy cannot be changed by those who read it."""

    text: str = "{}"

    @classmethod
    def parse(cls, given: Any, *, of: str = "executor_options") -> "ExecutorOptions":
        """Read a mapping, or its JSON; raises InvalidOption when it is no JSON object. None means none."""
        if isinstance(given, ExecutorOptions):
            return given
        found = _loaded(given, of) if isinstance(given, str) else given or {}
        if not isinstance(found, Mapping) or not all(isinstance(name, str) for name in found):
            raise InvalidOption(f"{of} is {shown(given)}; write a mapping of names to values, such as queue to 'slow'.")
        try:
            json_of(dict(found))  # refuses what no database stores
            text = json.dumps(dict(found), sort_keys=True, separators=(",", ":"), allow_nan=False)
        except (TypeError, ValueError, RecursionError) as error:
            raise InvalidOption(f"{of} is {shown(given)}; its values must be JSON: {error}.") from error
        if len(text) > LONGEST:
            raise InvalidOption(f"{of} has {len(text)} characters as JSON; at most {LONGEST} are allowed.")
        return cls(text)

    @property
    def values(self) -> dict[str, Any]:
        """The options, as a mapping of its own."""
        values: dict[str, Any] = json.loads(self.text)
        return values

    def __bool__(self) -> bool:
        return self.text != "{}"

    def __str__(self) -> str:
        return self.text


def refuse_options(executor: str, options: ExecutorOptions) -> None:
    """Raise InvalidOption for what the executor does not take, as far as it says what it does.

    One that calls runs here takes none and does not look at them: a job is brought back here by one option.
    """
    if not options:
        return
    known = executor_named(executor)
    if known.options is None or not known.hands_over:
        return
    for name, value in options.values.items():
        _refuse(known, name, value)


def _loaded(text: str, of: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidOption(f'{of} is {shown(text)}; write JSON such as {{"queue": "slow"}}.') from error


def _refuse(executor: Executor, name: str, value: object) -> None:
    kinds = dict(executor.options or ())
    if name not in kinds:
        takes = f"takes {', '.join(sorted(kinds))}" if kinds else "takes none"
        hint = did_you_mean(name, kinds)
        raise InvalidOption(f"executor_options has {shown(name)}.{hint} The executor {executor.name!r} {takes}.")
    kind, place = kinds[name], f"executor_options: {name}"
    if isinstance(kind, range):
        checked_whole(place, value, least=kind.start, most=kind.stop - 1)
    elif kind is float:
        if isinstance(value, bool) or checked_number(place, value) <= 0:
            raise InvalidOption(f"{place} is {shown(value)}; it must be a number of seconds above 0.")
    elif not checked_text(place, value, longest=LONGEST_TEXT).strip():
        raise InvalidOption(f"{place} is {shown(value)}; it must not be empty.")
