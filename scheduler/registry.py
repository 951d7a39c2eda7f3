"""Registered tasks: plain functions with a name, a schedule and options, checked at import."""

import inspect
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any, TypeVar

from django.core.exceptions import ImproperlyConfigured

from scheduler.arguments import (
    checked_flag,
    checked_group,
    checked_kwargs,
    checked_name,
    checked_priority,
    checked_text,
)
from scheduler.conf import conf
from scheduler.exceptions import DuplicateTask, InvalidOption, InvalidSchedule, UnknownTask
from scheduler.functions import dotted_path, first_line, gives, runs_nothing, same_function
from scheduler.policy import DEFAULT_POLICY, Policy
from scheduler.policy.base import differences
from scheduler.policy.codec import from_options
from scheduler.schedules import AfterJobs, Manual, OnActivity, Schedule, parse, refuse_cycle

F = TypeVar("F", bound=Callable[..., Any])
Gate = Callable[[], bool | str]

NOT_FOR_USERS = frozenset(
    (
        "breaker_probe_after", "breaker_threshold", "catch_up_window", "ends_at", "grace", "max_catch_up", "max_runs",
        "misfire", "rate_limit", "starts_at", "timeout",
    )
)  # fmt: skip
"""Policies of slots that time makes, or of which an `OnActivity` says its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A registered function and what its job of the same name is made of.

    `place` is the file and line of the registration, `module` its module; `gate` must say True before the job may be
    enabled or run. `confirm`: whether a person is asked before a run by hand, or what that person should know.
    """

    name: str
    function: Callable[..., Any]
    schedule: Schedule = field(default_factory=Manual)
    policy: Policy = DEFAULT_POLICY
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    enabled: bool = True
    group: str = ""
    priority: int = 0
    description: str = ""
    gate: Gate | None = None
    confirm: bool | str = False
    takes_context: bool = False
    place: str = ""
    module: str = ""

    def __post_init__(self) -> None:
        checked_name(self.name)
        _check_function(self.function)
        checked_interval(self.schedule)
        if isinstance(self.schedule, OnActivity):
            _check_for_users(self)
        object.__setattr__(self, "kwargs", checked_kwargs(self.kwargs))
        checked_flag("enabled", self.enabled)
        checked_group(self.group)
        checked_priority(self.priority)
        checked_text("description", self.description)
        _check_gate(self.gate)
        if not isinstance(self.confirm, bool | str):
            raise InvalidOption(f"confirm is {self.confirm!r}; it must be True, False, or what to tell who is asked.")
        checked_flag("takes_context", self.takes_context)

    def closed_gate(self) -> str | None:
        """Ask the gate; return why it is closed, None when it is open or there is none. One that fails is closed."""
        if self.gate is None:
            return None
        try:
            answer = self.gate()
        except Exception as error:
            return f"it failed with {type(error).__name__}: {error}"
        if answer is True:
            return None
        return (isinstance(answer, str) and answer) or "it says no"


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
            raise UnknownTask(f"No task {name!r} is registered here.{hint}")
        return task

    def find(self, name: str) -> Task | None:
        """Return the task of this name, or None."""
        return self._tasks.get(name) if isinstance(name, str) else None

    def why_missing(self, name: str, module: str) -> str:
        """Say why a task is not here: `module`, which registered it, failed to import, or no longer registers it."""
        for failed, failure in self.failures.items():
            if module == failed or module.startswith(f"{failed}."):
                return f"{failed} could not be imported: {failure}"
        return f"No code registers the task {name!r} any more."

    def told_failures(self) -> str:
        """Return a sentence for each module that could not be imported: what is asked for may have been in it."""
        return "".join(f" {module} could not be imported: {why}." for module, why in self.failures.items())

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
        return task.schedule.jobs if task is not None and isinstance(task.schedule, AfterJobs) else ()

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


def did_you_mean(name: object, known: Any) -> str:
    """Return “ Did you mean 'a' or 'b'?” for near names, else an empty string."""
    near = get_close_matches(name, list(known), n=3) if isinstance(name, str) else []
    return f" Did you mean {' or '.join(map(repr, near))}?" if near else ""


def register(
    name: str | None = None,
    *,
    schedule: Schedule | str | Mapping[str, Any] | None = None,
    enabled: bool = True,
    kwargs: Mapping[str, Any] | None = None,
    group: str = "",
    priority: int = 0,
    description: str | None = None,
    gate: Gate | None = None,
    confirm: bool | str = False,
    takes_context: bool = False,
    into: Registry | None = None,
    **options: Any,
) -> Callable[[F], F]:
    """Register the decorated function, which stays what it is, as a task, and its schedule as a job of the same name.

    `name` defaults to its dotted path. `schedule` may be in text or JSON form; without one the job runs by hand only.
    `kwargs` are JSON, as a database gives them back. `options` are the policy options. Raises InvalidSchedule,
    InvalidOption or DuplicateTask, naming the place.
    """
    if callable(name):
        raise InvalidOption(f'@register at {_caller_place()[0]} needs a name in brackets: @register("name").')
    place, module = _caller_place()
    given = {"enabled": enabled, "group": group, "priority": priority, "gate": gate, "confirm": confirm}

    def decorate(function: F) -> F:
        with _naming(name or function, place):
            task = Task(
                name=dotted_path(function) if name is None else name,
                function=function,
                schedule=Manual() if schedule is None else parse(schedule),
                policy=from_options(options),
                kwargs={} if kwargs is None else kwargs,
                description=first_line(function) if description is None else description,
                takes_context=takes_context,
                place=place,
                module=module,
                **given,  # type: ignore[arg-type]
            )
            (registry if into is None else into).add(task)
        return function

    return decorate


def get_tasks() -> list[Task]:
    """Return the tasks registered in this process, sorted by name."""
    return list(registry)


@contextmanager
def _naming(name: object, place: str) -> Iterator[None]:
    """Add the task and the place of its registration to a configuration error."""
    try:
        yield
    except (InvalidSchedule, InvalidOption) as error:
        error.args = (f"Task {name!r} at {place}: {error}",)
        raise


def checked_interval(schedule: Schedule) -> Schedule:
    """Return the schedule; raises InvalidSchedule when it is due more often than SCHEDULER_MIN_INTERVAL allows.

    Without settings, where no scheduler can run either, every interval is long enough.
    """
    if schedule.period is None:
        return schedule
    seconds = schedule.period.total_seconds()
    try:
        shortest = conf.MIN_INTERVAL
    except ImproperlyConfigured:
        return schedule
    if seconds < shortest:
        message = f"The interval is {seconds:g} s; the shortest allowed is {shortest:g} s (SCHEDULER_MIN_INTERVAL)."
        raise InvalidSchedule(message, field="seconds")
    return schedule


def _check_function(function: object) -> None:
    if not callable(function):
        raise InvalidOption(f'{function!r} is no function; put @register("name") on one.')
    if runs_nothing(function):
        raise InvalidOption(f"{function!r} is a generator, of which a call runs nothing; write it without yield.")


def _check_for_users(task: Task) -> None:
    """A run for a user has its limits from its schedule, and is called with the ids of the user."""
    refuse_policies_for_users(task.policy)
    ids = dict.fromkeys(("user_id", "device_id", "agent_id"))
    context = (None,) if task.takes_context else ()
    try:
        inspect.signature(task.function).bind(*context, **{**task.kwargs, **ids})
    except TypeError as error:
        text = f"{task.function!r} cannot be called with user_id, device_id and agent_id, as OnActivity does: {error}."
        raise InvalidOption(text) from None
    except ValueError:  # a callable that does not tell what it takes
        return


def refuse_policies_for_users(policy: Policy) -> None:
    """Raise InvalidOption when a policy has options that mean nothing to runs that follow what users do."""
    if given := sorted(differences(policy).keys() & NOT_FOR_USERS):
        raise InvalidOption(f"{', '.join(given)} has no meaning with OnActivity, which has limits of its own.")


def _check_gate(gate: object) -> None:
    if gate is None or (callable(gate) and not gives(inspect.iscoroutinefunction, gate)):
        return
    raise InvalidOption(f"gate is {gate!r}; it must be a plain function that answers True, False or a reason.")


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
