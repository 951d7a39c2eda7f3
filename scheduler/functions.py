"""Functions: what calling one gives, and whether two are one."""

import inspect
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache, partial
from typing import Any

from scheduler.exceptions import InvalidOption

Function = Callable[..., Any]


def is_async(function: Function) -> bool:
    """Return whether calling the function gives a coroutine, also behind partials, wrappers and callable objects."""
    try:
        return _is_async(function)
    except TypeError:  # a callable object without a hash
        return _is_async.__wrapped__(function)


@lru_cache(maxsize=4096)
def _is_async(function: Function) -> bool:
    return gives(inspect.iscoroutinefunction, innermost(function))


def gives(kind: Callable[[Any], bool], function: Function) -> bool:
    """Return whether a function, as it is, is of a kind that `inspect` knows: what it wraps does not count."""
    while isinstance(function, partial):
        function = function.func
    return kind(function) or kind(
        getattr(function, "__call__", None)  # noqa: B004 - the method is asked for, not whether it can be called
    )


def runs_nothing(function: Function) -> bool:
    """Return whether calling the function only makes a generator, which nobody would run."""
    return gives(inspect.isgeneratorfunction, function) or gives(inspect.isasyncgenfunction, function)


def is_left_over(result: object, function: Function) -> bool:
    """Return whether a call gave the body of the function itself as a generator: nothing of it has run."""
    code = getattr(result, "gi_code", None) or getattr(result, "ag_code", None)
    return code is not None and code is getattr(innermost(function), "__code__", None)


def innermost(function: Function) -> Any:
    """Return what partials and wrappers are around."""
    while isinstance(function, partial):
        function = function.func
    with suppress(ValueError):  # wrappers that go round in a circle
        function = inspect.unwrap(function)
    return function


def same_function(one: Function, other: Function) -> bool:
    """Whether both are one function: the same object, or one file imported under two module names."""
    if one is other:
        return True
    code, other_code = (getattr(innermost(function), "__code__", None) for function in (one, other))
    if code is None or other_code is None or code.co_freevars:
        return False
    return (code.co_filename, code.co_firstlineno, code.co_name) == (
        other_code.co_filename,
        other_code.co_firstlineno,
        other_code.co_name,
    )


def dotted_path(function: Function) -> str:
    """Return the module and name of a function; raises InvalidOption for one that has none, such as a partial."""
    try:
        return f"{function.__module__}.{function.__qualname__}"
    except AttributeError:
        raise InvalidOption(f'{function!r} has no name of its own; give it one: @register("name").') from None


def first_line(function: Function) -> str:
    """Return the first line of the docstring."""
    return (inspect.getdoc(function) or "").partition("\n")[0]
