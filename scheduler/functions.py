"""Functions: what calling one gives, and whether two are one."""

import inspect
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache, partial
from types import CodeType, FunctionType, MethodType
from typing import Any

from scheduler.exceptions import InvalidOption
from scheduler.safetext import shown

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
    """Return whether calling the function only makes a generator, which would never run."""
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
    """Whether both are one function: the same object, one that was made alike, or one whose file was imported again.

    A file that is imported under two names, or reloaded, has the same definitions in other code objects. What one
    definition made twice, in a loop say, shares its code, and is one function only where all else agrees.
    """
    try:
        return _is_same(one, other)
    except (RecursionError, ValueError):  # functions that hold themselves, or what is still to be assigned
        return False


def _is_same(one: Function, other: Function) -> bool:
    if one is other:
        return True
    code, other_code = _code(innermost(one)), _code(innermost(other))
    if code is None or other_code is None or _place(code) != _place(other_code):
        return False
    if code is other_code:  # of what is around them, that may be from a file that was imported again
        code, other_code = _code(one), _code(other)
    if code is None or other_code is None or code is other_code:
        return _agrees(_given(one), _given(other))
    return _place(code) == _place(other_code)


def _code(function: Any) -> CodeType | None:
    return getattr(function, "__code__", None)


def _place(code: CodeType) -> tuple[str, int, str]:
    return code.co_filename, code.co_firstlineno, code.co_name


def _given(function: Any) -> tuple[Any, ...]:
    """Return what makes a function of one definition differ from another: what is around it, and what it remembers."""
    if isinstance(function, partial):
        return partial, function.func, function.args, function.keywords
    if isinstance(function, MethodType):
        return MethodType, id(function.__self__), function.__func__
    if _code(function) is None:  # a wrapper that is no function, such as that of a cache
        return type(function), getattr(function, "__wrapped__", None)
    remembered = tuple(cell.cell_contents for cell in function.__closure__ or ())
    return FunctionType, function.__defaults__, function.__kwdefaults__, remembered


def _agrees(one: Any, other: Any) -> bool:
    """Whether two values are equal, with the functions in them the same."""
    if one is other:
        return True
    if isinstance(one, tuple) and isinstance(other, tuple):
        return len(one) == len(other) and all(map(_agrees, one, other))
    if callable(one) and callable(other):
        return _is_same(one, other)
    try:
        return bool(one == other)
    except Exception:  # a value that cannot be compared
        return False


def dotted_path(function: Function) -> str:
    """Return the module and name of a function; raises InvalidOption for one that has none, such as a partial."""
    try:
        return f"{function.__module__}.{function.__qualname__}"
    except AttributeError:
        raise InvalidOption(f'{shown(function)} has no name of its own; give it one: @register("name").') from None


def first_line(function: Function) -> str:
    """Return the first line of the docstring."""
    return (inspect.getdoc(function) or "").partition("\n")[0]
