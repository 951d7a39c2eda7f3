"""The backend: a task that is enqueued becomes a row that waits, in the transaction of the caller."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from django.core.checks import CheckMessage
from django.utils import timezone

from scheduler.arguments import checked_key
from scheduler.clock import SYSTEM_CLOCK
from scheduler.contrib.tasks.compat import BaseTaskBackend, Library, default_library, library_of, no_such_result
from scheduler.contrib.tasks.options import own_options, policy_of
from scheduler.contrib.tasks.paths import refuse_unreachable, task_at
from scheduler.contrib.tasks.results import result_of, task_as_enqueued, told
from scheduler.contrib.tasks.telling import result_of_attempt, tell
from scheduler.contrib.tasks.values import as_stored
from scheduler.exceptions import InvalidOption

if TYPE_CHECKING:
    from scheduler.engine.control.enqueue import Carrier, Waiting
    from scheduler.policy import Policy

Call = tuple[Sequence[Any], Mapping[str, Any]]
"""The arguments of a call, and its keyword arguments."""

LONGEST_NAME, LONGEST_QUEUE = 255, 94
"""Characters that the columns hold."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduledTask(default_library().base.Task):  # type: ignore[misc]
    """A task with options of its own, which come before those of TASKS: `@task(max_attempts=3, backoff="30s")`."""

    max_attempts: int | None = None
    backoff: Any = None
    timeout: Any = None
    unique: str | None = None
    """The key under which one call waits at a time: `task.using(unique="…").enqueue(…)`."""

    def using(self, *, unique: str | None = None, **changes: Any) -> Any:
        """As Django's, which leaves what is None; also with a key."""
        changed = super(ScheduledTask, self).using(**changes)  # the class is made again for its slots
        return changed if unique is None else replace(changed, unique=unique)


class SchedulerBackend(BaseTaskBackend):  # type: ignore[misc]
    """Runs what is enqueued in the processes that run the scheduler, one at a time for each row, durably.

    One instance is made for each thread: it holds nothing but what TASKS say.
    """

    task_class = ScheduledTask
    supports_defer = True
    supports_async_task = True
    supports_get_result = True
    supports_priority = True

    def __init__(self, alias: str, params: Mapping[str, Any]) -> None:
        super().__init__(alias, params)
        self.params = params
        self._policy: Policy | None = None

    def validate_task(self, task: Any) -> None:
        """Raise InvalidTask for a task that cannot wait here. A `run_after` that is a timedelta means from now."""
        invalid = library_of(task).invalid_task
        if isinstance(task.run_after, timedelta):
            _with_instant(task)  # validates itself
            return
        if task.run_after is not None and not isinstance(task.run_after, datetime):
            raise invalid("run_after must be a datetime, or a timedelta from now.")
        if isinstance(task.priority, bool) or not isinstance(task.priority, int | float) or not _within(task.priority):
            raise invalid("priority must be a whole number between -100 and 100.")
        if not isinstance(task.queue_name, str) or not 0 < len(task.queue_name) <= LONGEST_QUEUE:
            raise invalid(f"The name of a queue must be a text of 1 to {LONGEST_QUEUE} characters.")
        if (unique := unique_of(task)) is not None:
            try:
                checked_key("unique", unique)
            except InvalidOption as error:
                raise invalid(str(error)) from None
        super().validate_task(task)

    def enqueue(self, task: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Write the task in the transaction of the caller; returns its result, which is READY.

        While a call waits under the key of a task that is `unique`, nothing is written: its result is returned.
        Raises InvalidTask, TypeError or ValueError before anything is written.
        """
        from scheduler.engine.control.enqueue import enqueue, enqueue_unique

        task = self.checked(task)
        carrier, waiting, now = self.carrier(task), self.waiting(task, args, kwargs), SYSTEM_CLOCK.now()
        if (unique := unique_of(task)) is None:
            return self.told(task, enqueue(carrier, waiting, now))
        run, is_new = enqueue_unique(carrier, unique, waiting, now)
        return self.told(task, run) if is_new else result_of_attempt(run)

    def told(self, task: Any, run: Any) -> Any:
        """Return the result of a row that has just been written, after the receivers were told."""
        library = library_of(task)
        result = result_of(library, task, [run])
        tell(library, "task_enqueued", type(self), result)
        return result

    def get_result(self, result_id: str) -> Any:
        """Return the result of an id, by one query; raises TaskResultDoesNotExist, or ImportError: its task is gone."""
        from scheduler.contrib.tasks.ledger import attempts_of

        attempts = attempts_of(result_id, self.alias)
        if not attempts:
            raise no_such_result(result_id)
        envelope = attempts[-1].kwargs
        task = task_as_enqueued(task_at(envelope["task"]), envelope)
        return result_of(library_of(task), task, attempts)

    def check(self, **kwargs: Any) -> Iterable[CheckMessage]:
        """Return what is wrong with the settings of this backend."""
        from scheduler.contrib.tasks.checks import messages

        return messages(self)

    def checked(self, task: Any) -> Any:
        """Return a task that may be enqueued, with an instant to run after; raises InvalidTask."""
        self.validate_task(task)
        refuse_unreachable(task)
        if len(self._name(task)) > LONGEST_NAME:
            raise library_of(task).invalid_task(
                f"The path of the task is too long: {self._name(task)!r} must fit a column."
            )
        return _with_instant(task) if isinstance(task.run_after, timedelta) else task

    def carrier(self, task: Any) -> "Carrier":
        """Return what the job is made of that carries the calls of a task on its queue."""
        from scheduler.engine.control.enqueue import Carrier, group_of
        from scheduler.functions import is_async
        from scheduler.models.carriers import DJANGO_TASKS

        return Carrier(
            name=self._name(task),
            task="django tasks, async" if is_async(task.func) else "django tasks",
            source=DJANGO_TASKS,
            policy=self._policy_of(task),
            group=group_of(task.queue_name),
            description=f"Calls of {task.module_path}"[:LONGEST_NAME],
        )

    def waiting(self, task: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> "Waiting":
        """Return what is to be written of one call; raises TypeError or ValueError for what no database keeps."""
        (one,) = self.all_waiting(task, [(args, kwargs)])
        return one

    def all_waiting(self, task: Any, calls: Iterable[Call]) -> "list[Waiting]":
        """Return what is to be written of calls of one task."""
        from scheduler.engine.control.enqueue import Waiting

        library, run_after, priority = library_of(task), task.run_after, int(task.priority)
        said = {
            "task": task.module_path,
            "priority": priority,
            "run_after": None if run_after is None else run_after.isoformat(),
            "queue": task.queue_name,
            "backend": self.alias,
        }
        if (unique := unique_of(task)) is not None:
            said["unique"] = unique
        due_at = _instant(run_after)
        return [
            Waiting(kwargs=said | _arguments(library, args, kwargs), priority=priority, due_at=due_at)
            for args, kwargs in calls
        ]

    def _policy_of(self, task: Any) -> "Policy":
        """Return the policy of a task; that of all tasks without options of their own is made once."""
        if own := own_options(task):
            return policy_of(self.options or {}, own)
        if self._policy is None:
            self._policy = policy_of(self.options or {}, own)
        return self._policy

    def _name(self, task: Any) -> str:
        return f"{self.alias}:{task.queue_name}:{task.module_path}"


def unique_of(task: Any) -> Any:
    """Return the key under which one call of a task waits at a time; None where as many wait as are enqueued."""
    return getattr(task, "unique", None)


def _arguments(library: Library, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    return {"args": as_stored(library, list(args)), "kwargs": as_stored(library, dict(kwargs))}


def _within(priority: float) -> bool:
    return -100 <= priority <= 100  # NaN is not


def _with_instant(task: Any) -> Any:
    now = SYSTEM_CLOCK.now()
    at = now + task.run_after
    return replace(task, run_after=told(at))


def _instant(run_after: datetime | None) -> datetime | None:
    if run_after is None:
        return None
    aware = run_after if timezone.is_aware(run_after) else timezone.make_aware(run_after)
    return aware.astimezone(UTC)
