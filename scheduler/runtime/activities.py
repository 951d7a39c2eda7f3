"""The scheduler of activities as an object, by which programs outside of this one take part, too."""

from collections.abc import Callable
from typing import Any

from asgiref.sync import sync_to_async

from scheduler.activity.api import Id, get_queue_depths, schedule_user_task, users_to_note
from scheduler.activity.entry import Entry
from scheduler.activity.keys import UserKeyBuilder
from scheduler.activity.service import Users, complete, take, users_of
from scheduler.activity.store.chosen import chosen_store
from scheduler.conf import conf
from scheduler.engine.base import Engine
from scheduler.engine.control.lookup import get_job
from scheduler.engine.db.shared_time import shared_now
from scheduler.exceptions import InvalidOption, TaskFailed, UnknownJob, UnknownTask
from scheduler.registry import Registry, Task, registry
from scheduler.runtime import current
from scheduler.schedules import OnActivity, Schedule, parse

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
        self._add(task_type, schedule)

    def _add(self, task_type: str, schedule: Schedule, place: str = "") -> None:
        function = Elsewhere(task_type)
        self._tasks.add(Task(name=task_type, function=function, schedule=schedule, place=place, module=__name__))

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

        The caller has the `timeout` of the type to call `complete_task` with the entry's `user_key` and
        `lock_token`; after that the run is lost, and counts as a failure.
        """
        users = users_to_note(task_type)
        return None if users is None else take(users, shared_now(Engine().using))

    def complete_task(self, task_type: str, user_key: str, lock_token: str, success: bool) -> bool:
        """Tell how what `get_pending_task` gave has ended; False when that was too late, and nothing is changed."""
        engine = Engine()
        users = self._users(task_type)
        return complete(engine, users, user_key, lock_token, success=success, now=shared_now(engine.using))

    async def aget_pending_task(self, task_type: str) -> Entry | None:
        """`get_pending_task` for async workers."""
        return await sync_to_async(self.get_pending_task)(task_type)

    async def acomplete_task(self, task_type: str, user_key: str, lock_token: str, success: bool) -> bool:
        """`complete_task` for async workers."""
        return await sync_to_async(self.complete_task)(task_type, user_key, lock_token, success)

    async def astop(self, timeout: float = STOP_SECONDS) -> None:
        """`stop` for async programs, whose loop goes on while it waits."""
        await sync_to_async(self.stop, thread_sensitive=False)(timeout)

    def get_task_config(self, task_type: str) -> OnActivity | None:
        """Return the rules of a task type, as people may have changed them; None when there is no such type."""
        try:
            return self._users(task_type).rules
        except UnknownJob:  # its row appears when a scheduler starts; until then the rules are those of the code
            task = self._tasks.find(task_type) if isinstance(task_type, str) else None
            return task.schedule if task is not None and isinstance(task.schedule, OnActivity) else None
        except UnknownTask:
            return None

    def get_queue_depths(self) -> dict[str, int]:
        """As the function of this name."""
        return get_queue_depths()

    def user_keys(self, task_type: str) -> UserKeyBuilder:
        """Return what builds and parses the keys of a type."""
        rules = self.get_task_config(task_type) or self._users(task_type).rules
        return UserKeyBuilder(rules.dimensions)

    def start(self) -> None:
        """Start the scheduler of this process."""
        current.start()

    def stop(self, timeout: float = STOP_SECONDS) -> None:
        """Stop the scheduler of this process, waiting at most `timeout` seconds for its runs."""
        current.stop(timeout)

    def is_running(self) -> bool:
        """Return whether the scheduler of this process runs."""
        runner = current.current()
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
    """Replace the activity scheduler of this process and return the new one; `tasks` is the registry it adds to."""
    global _scheduler
    _scheduler = ActivityScheduler(tasks)
    return _scheduler


def register_from_settings(users: ActivityScheduler) -> None:
    """Add the task types of SCHEDULER_ACTIVITY_TASKS. Raises ConfigurationError when the setting is wrong."""
    for task_type, schedule in conf.ACTIVITY_TASKS.items():
        users._add(task_type, parse(schedule), place="SCHEDULER_ACTIVITY_TASKS")
