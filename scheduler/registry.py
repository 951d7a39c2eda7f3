"""Registered tasks: plain functions with a name, a schedule and options, checked at import."""

import inspect
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from importlib import import_module
from typing import Any, TypeVar, Unpack

from scheduler.arguments import DESCRIPTION_LENGTH, checked_flag, checked_name, checked_text, did_you_mean
from scheduler.definition import Definition
from scheduler.exceptions import DuplicateTask, InvalidOption, InvalidSchedule, UnknownTask
from scheduler.functions import dotted_path, first_line, gives, runs_nothing, same_function
from scheduler.options import Options, ScheduleLike, refuse_unknown
from scheduler.policy.codec import from_options
from scheduler.safetext import masked_head, shown, told
from scheduler.schedules import Manual, Schedule, parse, refuse_cycle
from scheduler.signatures import why_not_called

F = TypeVar("F", bound=Callable[..., Any])
Gate = Callable[[], bool | str]

LONGEST_ANSWER = 1000
"""Characters of what a closed gate says."""
SOURCE_LENGTH = 255
NOT_IMPORTED = "could not be imported"

USER_IDS = ("user_id", "device_id", "agent_id")
"""What a run for a user is called with, beside the kwargs of its task."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task(Definition):
    """A registered function and what its job of the same name is made of.

    `place` is the file and line of the registration, `module` its module; `gate` must say True before the job may be
    enabled or run. `confirm`: whether a person is asked before a run by hand, or what that person should know.
    `renamed_from`: the name it had before, whose job becomes its own.
    """

    name: str
    function: Callable[..., Any]
    gate: Gate | None = None
    confirm: bool | str = False
    takes_context: bool = False
    place: str = ""
    module: str = ""
    renamed_from: str = ""

    def __post_init__(self) -> None:
        checked_name(self.name)
        _check_function(self.function)
        Definition.__post_init__(self)
        _check_gate(self.gate)
        if not isinstance(self.confirm, bool | str):
            raise InvalidOption(
                f"confirm is {shown(self.confirm)}; it must be True, False, or what to tell who is asked."
            )
        checked_flag("takes_context", self.takes_context)
        if self.renamed_from and checked_name(self.renamed_from) == self.name:
            raise InvalidOption(f"renamed_from is {self.renamed_from!r}, the name that it has now; give the old one.")
        self.refuse_call(self.kwargs, self.schedule)

    def job_columns(self) -> dict[str, Any]:
        """Return the columns of its job as the code says them."""
        return {"task": self.name, **self.columns(), "source": self.module[:SOURCE_LENGTH]}

    def refuse_call(self, kwargs: Collection[str], schedule: Schedule | None = None) -> None:
        """Raise InvalidOption when a call with these arguments would raise TypeError.

        With a schedule, those of its runs: `OnActivity` adds the ids of the user, `Manual` has the rest given later.
        """
        for_users = schedule is not None and schedule.for_users
        names = [*kwargs, *USER_IDS] if for_users else list(kwargs)
        complete = schedule is None or not schedule.is_called_by_hand
        why = why_not_called(self.function, names, takes_context=self.takes_context, lacks_none=complete)
        if why:
            ids = ", with user_id, device_id and agent_id as OnActivity does" if for_users else ""
            called = getattr(self.function, "__qualname__", None) or shown(self.function)
            text = f"{self.name!r} cannot be called{ids}: {called} {why}{'' if why.endswith('?') else '.'}"
            raise InvalidOption(text, field="kwargs")

    def closed_gate(self) -> str | None:
        """Ask the gate; return why it is closed, None when it is open or there is none. One that fails is closed."""
        if self.gate is None:
            return None
        try:
            answer = self.gate()
        except Exception as error:
            return f"it failed with {type(error).__name__}: {told(error)}"
        if answer is True:
            return None
        return (isinstance(answer, str) and masked_head(answer, LONGEST_ANSWER)[:LONGEST_ANSWER]) or "it says no"


class Registry:
    """The tasks of this process, by name."""

    def __init__(self) -> None:
        self._tasks: dict[str, Task] = {}
        self.failures: dict[str, str] = {}
        """Modules that could not be imported, each with what was wrong; their jobs are left alone, not deleted."""

    def add(self, task: Task) -> None:
        """Add a task; the same function again is no-op, another one under the name raises DuplicateTask."""
        refuse_cycle(task.name, task.schedule, self._parents_of)
        present = self._tasks.get(task.name)
        if present is None or same_function(present.function, task.function):
            self._tasks[task.name] = task
            return
        raise DuplicateTask(
            f"Task {task.name!r} is registered twice: at {present.place} and at {task.place}. Rename one of them."
        )

    def get(self, name: str) -> Task:
        """Return the task of this name; raises UnknownTask with near names."""
        task = self.find(name)
        if task is None:
            hint = f"{did_you_mean(name, self._tasks)}{self.told_failures()}"
            raise UnknownTask(f"No task {shown(name)} is registered here.{hint}")
        return task

    def find(self, name: str) -> Task | None:
        """Return the task of this name, or None."""
        return (self._tasks.get(name) or _built_in(name)) if isinstance(name, str) else None

    def why_missing(self, name: str, module: str) -> str:
        """Say why a task is not here: `module`, which registered it, failed to import, or no longer registers it."""
        if failed := self.failed_module(module):
            return f"{failed} {NOT_IMPORTED}: {self.failures[failed]}"
        return f"No code registers the task {name!r} any more."

    def failed_module(self, module: str) -> str:
        """Return the module that failed to import and holds `module`, or is it; empty where there is none."""
        return next((one for one in self.failures if module == one or module.startswith(f"{one}.")), "")

    def told_failures(self) -> str:
        """Return a sentence for each module that could not be imported: what is asked for may have been in it."""
        return "".join(f" {module} {NOT_IMPORTED}: {why}." for module, why in self.failures.items())

    @contextmanager
    def all_or_nothing(self) -> Iterator[None]:
        """Import a module in this block: if that fails, the tasks that it left half loaded are taken back.

        Their functions would run in a module whose later names do not exist.
        """
        before = dict(self._tasks)
        try:
            yield
        except BaseException:
            for name, task in list(self._tasks.items()):
                if before.get(name) is not task and _is_half_loaded(task):
                    del self._tasks[name]
            self._tasks = before | self._tasks
            raise

    def _parents_of(self, name: str) -> tuple[str, ...]:
        task = self._tasks.get(name)
        return () if task is None else task.schedule.parents

    def remove(self, name: str) -> None:
        """Forget a task (tests and reloads)."""
        self._tasks.pop(name, None)

    def names(self) -> list[str]:
        """Return all names, sorted."""
        return sorted(self._tasks)

    def __iter__(self) -> Iterator[Task]:
        return iter([self._tasks[name] for name in self.names()])

    def __len__(self) -> int:
        return len(self._tasks)

    def __contains__(self, name: str) -> bool:
        return name in self._tasks


registry = Registry()

BUILT_IN = {
    "django tasks": "scheduler.contrib.tasks.calls.PLAIN",
    "django tasks, async": "scheduler.contrib.tasks.calls.ASYNC",
}
"""Tasks that every process has, and no list shows: they call what was enqueued. Imported at the first call."""
_imported: dict[str, "Task"] = {}


def _built_in(name: str) -> "Task | None":
    """Return a task of our own; None where there is none of the name, or its extra is not installed."""
    if (path := BUILT_IN.get(name)) is None or name in _imported:
        return _imported.get(name)
    module, _, attribute = path.rpartition(".")
    try:
        task: Task = getattr(import_module(module), attribute)
    except ImportError:
        return None
    return _imported.setdefault(name, task)


def register(
    name: str | None = None,
    schedule: ScheduleLike | None = None,
    *,
    enabled: bool = True,
    kwargs: Mapping[str, Any] | None = None,
    group: str = "",
    priority: int = 0,
    description: str | None = None,
    gate: Gate | None = None,
    confirm: bool | str = False,
    takes_context: bool = False,
    renamed_from: str = "",
    into: Registry | None = None,
    **options: Unpack[Options],
) -> Callable[[F], F]:
    """Register the decorated function, which stays what it is, as a task, and its schedule as a job of the same name.

    `name` defaults to its dotted path. `schedule` may be in text or JSON form; without one the job runs by hand only.
    `kwargs` are JSON, as a database gives them back. `renamed_from` is the name the task had before: the job of that
    name, with its history and what people changed, becomes this task's. `options` are the policy options. Raises
    InvalidSchedule, InvalidOption or DuplicateTask, naming the place.
    """
    place, module = _caller_place()
    _refuse_as_name(name, place)
    given: dict[str, Any] = {"enabled": enabled, "group": group, "priority": priority, "gate": gate, "confirm": confirm}
    given |= {"takes_context": takes_context, "renamed_from": renamed_from, "place": place, "module": module}

    def decorate(function: F) -> F:
        with _naming(name or function, place):
            task = _task_of(function, name, schedule, kwargs, description, options, given)
            (registry if into is None else into).add(task)
        return function

    return decorate


def _task_of(
    function: Callable[..., Any],
    name: str | None,
    schedule: ScheduleLike | None,
    kwargs: Mapping[str, Any] | None,
    description: str | None,
    options: Options,
    given: Mapping[str, Any],
) -> Task:
    """Return the task of a function, with what its code leaves out."""
    refuse_unknown(options, inspect.signature(register).parameters.keys() - {"options"})
    words = first_line(function) if description is None else checked_text("description", description)
    return Task(
        name=dotted_path(function) if name is None else name,
        function=function,
        schedule=Manual() if schedule is None else parse(schedule),
        policy=from_options(options),
        kwargs={} if kwargs is None else kwargs,
        description=words[:DESCRIPTION_LENGTH],
        **given,
    )


def get_tasks() -> dict[str, Task]:
    """Return the tasks registered in this process by name, sorted."""
    return {task.name: task for task in registry}


def _refuse_as_name(name: object, place: str) -> None:
    if callable(name):
        raise InvalidOption(f'@register at {place} has no brackets: write @register() or @register("name").')
    if isinstance(name, Schedule | timedelta | Mapping):
        raise InvalidOption(f'@register at {place} has its schedule first: write @register("name", {shown(name)}).')


@contextmanager
def _naming(name: object, place: str) -> Iterator[None]:
    """Add the task and the place of its registration to a configuration error."""
    try:
        yield
    except (InvalidSchedule, InvalidOption) as error:
        error.args = (f"Task {shown(name)} at {place}: {error}",)
        raise


def _check_function(function: object) -> None:
    if not callable(function):
        raise InvalidOption(f'{shown(function)} is no function; put @register("name") on one.')
    if runs_nothing(function):
        raise InvalidOption(f"{shown(function)} is a generator, of which a call runs nothing; write it without yield.")


def _check_gate(gate: object) -> None:
    if gate is None or (callable(gate) and not gives(inspect.iscoroutinefunction, gate)):
        return
    raise InvalidOption(f"gate is {shown(gate)}; it must be a plain function that answers True, False or a reason.")


def _caller_place() -> tuple[str, str]:
    """Return file:line and module of the code that called our caller."""
    frame = inspect.currentframe()
    for _ in range(2):
        frame = frame.f_back if frame else None
    if frame is None:
        return "?", ""
    return f"{frame.f_code.co_filename}:{frame.f_lineno}", str(frame.f_globals.get("__name__", ""))


def _is_half_loaded(task: Task) -> bool:
    """Whether the import of the task's module failed: Python has taken that module out of `sys.modules`."""
    modules = {task.module, getattr(task.function, "__module__", "")}
    return any(module not in sys.modules for module in modules if module)
