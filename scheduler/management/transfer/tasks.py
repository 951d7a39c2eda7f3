"""Tasks: which task here is meant by a name from elsewhere, and what its arguments are called."""

import inspect
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from scheduler.arguments import did_you_mean
from scheduler.exceptions import InvalidOption, UnknownTask
from scheduler.functions import dotted_path
from scheduler.registry import Task, registry
from scheduler.safetext import counted, masked, shown, without_secrets
from scheduler.signatures import BY_POSITION


@dataclass(frozen=True, slots=True)
class TaskNames:
    """Maps names: by a file that says so, by the same name, or by the path of the function that a task runs."""

    mapping: Mapping[str, str | None] = field(default_factory=dict)

    @classmethod
    def of_file(cls, path: str | None) -> "TaskNames":
        """Read a JSON object of names; raises InvalidOption."""
        return cls() if path is None else cls(_mapping(path))

    def find(self, name: str, aliases: tuple[str, ...] = (), *, mapped_only: bool = False) -> tuple[Task | None, str]:
        """Return the task, and a note where it has another name here; no task where the file says to leave it out.

        Raises UnknownTask with the way out.
        """
        for one in (name, *aliases):
            if one in self.mapping:
                here = self.mapping[one]
                note = "" if mapped_only else f"the task {name} is {here} here"
                return (None, "") if here is None else (registry.get(here), note)
        if mapped_only:
            raise UnknownTask(
                "Say in the file of --tasks which task does this: "
                f"{json.dumps({(*aliases, hidden(name))[0]: 'its name'}, ensure_ascii=False)}"
            )
        if (task := registry.find(name)) is not None:
            return task, ""
        same = [one for one in registry if _path_of(one) == name]
        if len(same) == 1:
            return same[0], f"the task {name} is registered as {same[0].name}"
        raise UnknownTask(
            f"No task {shown(name)} is registered here.{did_you_mean(name, registry.names())} Register it, or say in "
            f"the file of --tasks which task it is: {json.dumps({name: 'its name here'}, ensure_ascii=False)}"
        )


def named_arguments(task: Task, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Return keyword arguments for arguments by position; raises InvalidOption where the function does not say how
    they are called."""
    if not args:
        return dict(kwargs)
    names = _positions(task)
    if len(args) > len(names):
        takes = f"names {len(names)}" if names else "names none"
        raise InvalidOption(
            f"{counted(len(args), 'argument is', 'arguments are')} given by position, and the function of "
            f"{task.name!r} {takes}: jobs have keyword arguments only."
        )
    named = dict(zip(names, args, strict=False))
    if twice := sorted(named.keys() & kwargs.keys()):
        raise InvalidOption(f"the argument {twice[0]!r} is given by position and by name.")
    return named | dict(kwargs)


def hidden(command: str) -> str:
    """Return a command without the secrets in it."""
    return without_secrets(masked(command))


def _path_of(task: Task) -> str:
    try:
        return dotted_path(task.function)
    except InvalidOption:  # a partial has none
        return ""


def _positions(task: Task) -> list[str]:
    try:
        parameters = list(inspect.signature(task.function).parameters.values())
    except (TypeError, ValueError):
        return []
    names = [one.name for one in parameters if one.kind in BY_POSITION and one.kind is not one.POSITIONAL_ONLY]
    return names[1:] if task.takes_context else names


def _mapping(path: str) -> dict[str, str | None]:
    try:
        found = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise InvalidOption(f"--tasks {path} cannot be read: {error}.") from error
    if not isinstance(found, dict) or not all(isinstance(name, str | None) for name in found.values()):
        raise InvalidOption(
            f'--tasks {path} must be a JSON object of names, such as {{"shop.tasks.digest": "digest"}}; null leaves '
            "the schedules of a task out."
        )
    return found
