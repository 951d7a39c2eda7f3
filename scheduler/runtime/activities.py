"""The scheduler of activities as an object, by which programs outside of this one take part, too."""

from collections.abc import Callable
from typing import Any

from scheduler.activity.entry import Entry
from scheduler.activity.keys import UserKeyBuilder
from scheduler.activity.stores import chosen_store
from scheduler.engine.activity import Users, complete, take, users_of
from scheduler.engine.base import Engine
from scheduler.engine.control.activity import Id, get_queue_depths, schedule_user_task, users_to_note
from scheduler.engine.control.definition import get_job
from scheduler.engine.dbtime import shared_now
from scheduler.exceptions import InvalidOption, TaskFailed, UnknownTask
from scheduler.registry import Registry, Task, registry
from scheduler.runtime import local
from scheduler.schedules import OnActivity

STOP_SECONDS = 30.0


class Elsewhere:
    """The function of a task type without a handler here: workers outside of this scheduler take its entries."""

    runs_elsewhere = True

    def __init__(self, name: str) -> None:
        self.__qualname__ = self.name = name

    def __call__(self, **ids: Any) -> None:
        raise TaskFailed(f"No handler of {self.name!r} is registered in this process.")


class ActivityScheduler:
    """Task types, what users did, and who carries it out. `get_scheduler()` returns the one of this process."""

    def __init__(self, tasks: Registry = registry) -> None:
        self._tasks = tasks

    def register_task_type(self, task_type: str, schedule: OnActivity) -> None:
        """Add a task type, before the scheduler starts. Until it has a handler here, workers elsewhere take it."""
        if not isinstance(schedule, OnActivity):
            raise InvalidOption(f"{task_type!r} is to run by {schedule!r}; it must be an OnActivity.")
        self._tasks.add(Task(name=task_type, function=Elsewhere(task_type), schedule=schedule, module=__name__))

    def register_handler(self, task_type: str, handler: Callable[..., Any]) -> None:
        """Have a function called for the users of a type: with `user_id`, `device_id` and `agent_id`.

        It returns False, or raises, when it failed. Raises UnknownTask for a type that is not registered.
        """
        task = self._tasks.get(task_type)
        if isinstance(task.function, Elsewhere):
            self._tasks.remove(task_type)
        handled = Task(name=task_type, function=handler, schedule=task.schedule, module=handler.__module__)
        self._tasks.add(handled)

    def schedule_user_task(
        self, task_type: str, user_id: Id, device_id: Id | None = None, agent_id: Id | None = None
    ) -> bool:
        """As the function of this name."""
        return schedule_user_task(task_type, user_id, device_id, agent_id)

    def get_pending_task(self, task_type: str) -> Entry | None:
        """Take the user who has been due for longest; None when none is due, or the type is unknown or disabled.

        Whoever takes it has the `timeout` of the type to call `complete_task` with the entry's `user_key` and
        `lock_token`; after that the run is lost, and counts as a failure.
        """
        users = users_to_note(task_type)
        return None if users is None else take(users, shared_now(Engine().using))

    def complete_task(self, task_type: str, user_key: str, lock_token: str, success: bool) -> bool:
        """Tell how what `get_pending_task` gave has ended; False when that was too late, and nothing is changed."""
        engine = Engine()
        users = self._users(task_type)
        return complete(engine, users, user_key, lock_token, success=success, now=shared_now(engine.using))

    def get_task_config(self, task_type: str) -> OnActivity | None:
        """Return the rules of a task type, as people may have changed them; None when there is no such type."""
        try:
            return self._users(task_type).rules
        except LookupError:
            return None

    def get_queue_depths(self) -> dict[str, int]:
        """As the function of this name."""
        return get_queue_depths()

    def user_keys(self, task_type: str) -> UserKeyBuilder:
        """Return what builds and parses the keys of a type."""
        return UserKeyBuilder(self._users(task_type).rules.dimensions)

    def start(self) -> None:
        """Start the scheduler of this process."""
        local.start()

    def stop(self, timeout: float = STOP_SECONDS) -> None:
        """Stop the scheduler of this process, waiting at most `timeout` seconds for its runs."""
        local.stop(timeout)

    def is_running(self) -> bool:
        """Return whether the scheduler of this process runs."""
        runner = local.current()
        return runner is not None and runner.is_running()

    def _users(self, task_type: str) -> Users:
        job = get_job(task_type)
        users = users_of(chosen_store(Engine().using), job)
        if users is None:
            raise UnknownTask(f"{task_type!r} does not follow what users do: its schedule is “{job.schedule}”.")
        return users


_scheduler: ActivityScheduler | None = None


def get_scheduler() -> ActivityScheduler:
    """Return the scheduler of activities of this process."""
    return _scheduler or init_scheduler()


def init_scheduler(tasks: Registry = registry) -> ActivityScheduler:
    """Make, and return, the scheduler of activities of this process anew; `tasks` are those it adds to."""
    global _scheduler
    _scheduler = ActivityScheduler(tasks)
    return _scheduler
