"""Values: arguments and return values as every database gives them back."""

import json
import math
from typing import Any

from scheduler.contrib.tasks.compat import Library

MOST_LEVELS = 30
"""How deep lists and mappings may lie in each other."""


def as_stored(library: Library, value: Any) -> Any:
    """Return a value as a database gives it back: lists, text keys, plain numbers and texts.

    Raises TypeError for a type that JSON lacks, ValueError for what no database keeps.
    """
    if type(value) in (list, dict) and not value:  # no arguments, as often
        return value
    try:
        plain = library.base.normalize_json(value)
        _refuse(plain, MOST_LEVELS + 1)
        return json.loads(json.dumps(plain))
    except RecursionError:
        raise _too_deep() from None


def _refuse(value: Any, levels: int) -> None:
    """Raise ValueError for a value that some database refuses: on all of them alike."""
    if levels <= 0:
        raise _too_deep()
    match value:
        case str():
            _refuse_text(value)
        case float() if not math.isfinite(value):
            raise ValueError(f"Unsupported value: {value!r} is no number that JSON has.")
        case dict():
            for key, one in value.items():
                _refuse(key, levels)
                _refuse(one, levels - 1)
        case list():
            for one in value:
                _refuse(one, levels - 1)


def _refuse_text(text: str) -> None:
    if "\0" in text:
        raise ValueError("Unsupported value: a text with a NUL character.")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ValueError("Unsupported value: a text with a lone surrogate.") from error


def _too_deep() -> ValueError:
    return ValueError(f"Unsupported value: more than {MOST_LEVELS} levels of lists and mappings in each other.")
