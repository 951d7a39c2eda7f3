"""Signatures: whether a function can be called with the arguments that a job gives it, and what is wrong if not."""

import inspect
from collections.abc import Callable, Collection
from inspect import Parameter
from typing import Any

from scheduler.arguments import did_you_mean
from scheduler.safetext import shown

BY_POSITION = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
BY_NAME = (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)


def why_not_called(
    function: Callable[..., Any], names: Collection[str], *, takes_context: bool = False, lacks_none: bool = True
) -> str:
    """Say why a call with arguments of these names would raise TypeError; empty when it would not.

    Without `lacks_none`, arguments may be given later. A callable that does not tell what it takes is believed.
    Decorators count as what they wrap; one that gives arguments of its own sets `__signature__`.
    """
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return ""
    context = parameters[0] if takes_context and parameters and parameters[0].kind in BY_POSITION else None
    if takes_context and context is None and not _takes(parameters, Parameter.VAR_POSITIONAL):
        return "takes no context, which takes_context=True gives as the first argument. Write def f(context)"
    rest = parameters[1:] if context else parameters
    if context and context.name in names:
        return f"is given {context.name!r}, the context, by the scheduler, not by kwargs"
    return _unknown(rest, names) or _missing(rest, names, lacks_none=lacks_none)


def _takes(parameters: list[Parameter], kind: Any) -> bool:
    return any(parameter.kind is kind for parameter in parameters)


def _unknown(parameters: list[Parameter], names: Collection[str]) -> str:
    if _takes(parameters, Parameter.VAR_KEYWORD):
        return ""
    known = [parameter.name for parameter in parameters if parameter.kind in BY_NAME]
    for name in names:
        if name not in known:
            takes = f" It takes {', '.join(known)}." if known else " It takes none."
            return f"takes no argument {shown(name)}.{did_you_mean(name, known) or takes}".rstrip(".")
    return ""


def _not_given(parameters: list[Parameter], names: Collection[str]) -> list[Parameter]:
    """Return the parameters that have no default and are given nothing by name."""
    needed = [one for one in parameters if one.default is Parameter.empty and one.kind in (*BY_POSITION, *BY_NAME)]
    return [one for one in needed if one.name not in names or one.kind is Parameter.POSITIONAL_ONLY]


def _missing(parameters: list[Parameter], names: Collection[str], *, lacks_none: bool) -> str:
    missing = _not_given(parameters, names)
    if not missing:
        return ""
    first = missing[0]
    if first is parameters[0] and first.name in ("self", "cls"):
        return f"is a method, whose {first.name!r} is missing. Register a plain function, or a static method"
    if first.kind is Parameter.POSITIONAL_ONLY:
        return f"takes {first.name!r} by position only, and the scheduler gives arguments by name"
    if not lacks_none:
        return ""
    if first is parameters[0] and first.name == "context":
        return "needs 'context'. Add takes_context=True to @register"
    return f"needs {', '.join(repr(one.name) for one in missing)}, missing in kwargs"
