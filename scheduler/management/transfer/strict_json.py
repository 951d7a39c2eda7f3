"""Strict JSON: what other programs wrote, read without guessing."""

import json
from typing import Any

from scheduler.exceptions import InvalidOption
from scheduler.safetext import shown

LARGEST = 100 * 1024 * 1024
"""Characters that are read."""


def strict_json(text: str, what: str) -> Any:
    """Return what JSON says; raises InvalidOption also for NaN, and for a key that an object has twice."""
    if len(text) > LARGEST:
        raise InvalidOption(f"{what} has {len(text):,} characters; at most {LARGEST:,} are read.")
    try:
        return json.loads(text, object_pairs_hook=_without_duplicates, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise InvalidOption(f"{what} is not JSON: {error}.") from None


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        seen: set[str] = set()
        twice = next(name for name, _ in pairs if name in seen or seen.add(name))  # type: ignore[func-returns-value]
        raise ValueError(f"the key {shown(twice)} stands twice in one object")
    return found


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no number of JSON")
