"""One look: what a page that shows one moment asks for in several places, found once."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

T = TypeVar("T")

_found: ContextVar[dict[str, Any] | None] = ContextVar("found_in_one_look", default=None)


@contextmanager
def one_look() -> Iterator[None]:
    """Have the block ask once for what goes through `in_one_look`. What claims and changes never runs in it."""
    mark = _found.set({})
    try:
        yield
    finally:
        _found.reset(mark)


def in_one_look(name: str, ask: Callable[[], T]) -> T:
    """Return what `ask` finds; within `one_look` the same every time."""
    if (known := _found.get()) is None:
        return ask()
    if name not in known:
        known[name] = ask()
    found: T = known[name]
    return found
