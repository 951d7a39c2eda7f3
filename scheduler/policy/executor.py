"""Executors by name: what a job may say that runs its calls. The only list of them; everything else asks it.

Nothing is imported for a name. `scheduler.executors` imports what carries it out when the first run needs it.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from scheduler.exceptions import InvalidOption
from scheduler.safetext import shown

LONGEST_NAME = 40
OptionKind = type[str] | type[float] | range
"""What the value of an option of an executor must be: text, seconds above 0, or a whole number of a range."""
OPTIONAL = {"celery": "scheduler.contrib.celery", "django_tasks": "scheduler.contrib.django_tasks"}
"""Executors that come with the scheduler as apps of their own."""


def _(phrase: str) -> str:
    """Mark a label for translation, which the admin does."""
    return phrase


@dataclass(frozen=True, slots=True)
class Executor:
    """A way to carry out runs. `implementation` is the dotted path of a `Caller` or a `Handover`."""

    name: str
    label: str
    """What the admin offers, after “What runs the call:”."""
    implementation: str
    on_loop: bool = False
    """Whether `async def` tasks go on beside each other on the event loop of the process, and hold no worker."""
    hands_over: bool = False
    """Whether it is a `Handover`: the runs are called elsewhere."""
    options: tuple[tuple[str, OptionKind], ...] | None = None
    """Which `executor_options` jobs may give it, and what each must be; None: whatever is JSON."""


_executors: dict[str, Executor] = {}


def register_executor(
    name: str,
    implementation: str,
    *,
    label: str = "",
    on_loop: bool = False,
    hands_over: bool = False,
    options: Mapping[str, OptionKind] | None = None,
) -> None:
    """Let jobs say `executor="name"`, and have a class carry out their runs: a `Caller`, or a `Handover`.

    `implementation` is its dotted path. `options` names the `executor_options` it takes: each `str`, `float` (seconds
    above 0) or a range of whole numbers; without it jobs may give it whatever is JSON. Call this before tasks are
    registered that use it. Once more is no error; another executor of the same name, or a wrong argument, raises
    InvalidOption.
    """
    if not _is_name(name):
        raise _wrong("name", name, f"1 to {LONGEST_NAME} characters, printable and without blank ends")
    if not _is_dotted_path(implementation):
        raise _wrong("implementation", implementation, "the dotted path of a class, such as 'shop.queue.Handover'")
    if not isinstance(label, str) or not label.isprintable():
        raise _wrong("label", label, "a string of printable characters, which the admin translates")
    for option, value in (("on_loop", on_loop), ("hands_over", hands_over)):
        if not isinstance(value, bool):
            raise _wrong(option, value, "True or False")
    if on_loop and hands_over:
        raise _wrong("on_loop", on_loop, "False with hands_over=True: what is handed over is called elsewhere")
    executor = Executor(name, label or name, implementation, on_loop, hands_over, _checked_options(options))
    known = _executors.setdefault(name, executor)
    if known != executor:
        raise InvalidOption(f"There is another executor {name!r}: {known.implementation}.")


def _is_name(name: object) -> bool:
    return isinstance(name, str) and 0 < len(name) <= LONGEST_NAME and name.isprintable() and name == name.strip()


def _is_dotted_path(path: object) -> bool:
    return isinstance(path, str) and "." in path and all(map(str.isidentifier, path.split(".")))


def _checked_options(options: Mapping[str, OptionKind] | None) -> tuple[tuple[str, OptionKind], ...] | None:
    if options is None:
        return None
    if not isinstance(options, Mapping) or not all(_is_option(*item) for item in options.items()):
        raise _wrong("options", options, "a mapping of names to str, float or a range")
    return tuple((name, options[name]) for name in sorted(options))


def _is_option(name: object, kind: object) -> bool:
    return isinstance(name, str) and (kind in (str, float) or (isinstance(kind, range) and kind.step == 1))


def _wrong(argument: str, value: object, must: str) -> InvalidOption:
    return InvalidOption(f"register_executor(): {argument} is {shown(value)}; it must be {must}.")


def executors() -> tuple[Executor, ...]:
    """Return all executors, in the order in which they were registered."""
    return tuple(_executors.values())


def handovers() -> frozenset[str]:
    """Return the names of those to which runs are handed over."""
    return frozenset(executor.name for executor in executors() if executor.hands_over)


def executor_named(name: object) -> Executor:
    """Return an executor; raises InvalidOption, with the known names, when there is none."""
    found = _executors.get(name) if isinstance(name, str) else None
    if found is None:
        app = OPTIONAL.get(name) if isinstance(name, str) else None
        hint = f" For {name!r}, add {app!r} to INSTALLED_APPS." if app else ""
        raise InvalidOption(f"executor is {shown(name)}; it must be one of {', '.join(map(repr, _executors))}.{hint}")
    return found


register_executor("thread", "scheduler.executors.call.InThread", label=_("a thread"), on_loop=True)
register_executor("process", "scheduler.executors.process.parent.InProcess", label=_("a process of its own"))
