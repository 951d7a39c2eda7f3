"""For users: which jobs may have runs that follow what users do, and what is refused for these."""

from collections.abc import Mapping
from typing import Any

from scheduler.definition import refuse_policies_for_users
from scheduler.exceptions import InvalidOption, InvalidSchedule
from scheduler.models import Job
from scheduler.models.stored import Unreadable
from scheduler.registry import registry
from scheduler.schedules import Schedule


def has_users(name: str) -> bool:
    """Return whether the code registers a task of this name with `OnActivity`; the runs of others reach no user."""
    task = registry.find(name)
    return task is not None and task.schedule.for_users


def refuse_without_users(name: str, schedule: Schedule) -> None:
    """Raise InvalidSchedule when a job of this name is to follow what users do, and its code does not expect that.

    What the job follows already is not refused: its code may be registered elsewhere.
    """
    if not schedule.for_users or has_users(name):
        return
    stored = Job.objects.filter(name=name).first()
    if stored is not None and stored.schedule == schedule:
        return
    raise InvalidSchedule(
        f"The job {name!r} cannot follow what users do: the code registers no task of this name with OnActivity. "
        f'Write @register("{name}", schedule=OnActivity(...)) on a function that takes user_id, device_id and '
        "agent_id, or choose another kind of schedule.",
        field="type",
    )


def refuse_for_users(job: Job, columns: Mapping[str, Any]) -> None:
    """Raise InvalidOption when columns give a job that follows what users do a task, or policies, of no use to it."""
    if columns.keys().isdisjoint(("schedule", "task", "policy")):
        return
    if not columns.get("schedule", job.schedule).for_users:
        return
    task = registry.find(columns.get("task", job.task))
    if task is not None and not task.schedule.for_users:
        raise InvalidOption(f"task {task.name!r} is not registered with OnActivity, so no run for a user can call it.")
    policy = columns.get("policy", job.policy)
    if not isinstance(policy, Unreadable):
        refuse_policies_for_users(policy)


def names_no_user(job: Job, kwargs: Mapping[str, Any] | None = None) -> bool:
    """Return whether a run by hand of a job that follows what users do would not know for which user it is."""
    return job.schedule.for_users and "user_id" not in (job.kwargs if kwargs is None else kwargs)


def refuse_without_ids(job: Job, kwargs: Mapping[str, Any] | None) -> None:
    """Raise InvalidOption when a run by hand names no user; see `names_no_user`."""
    if names_no_user(job, kwargs):
        raise InvalidOption(
            f"A run of {job.name!r} is for one user: say which, with "
            'kwargs={"user_id": 7, "device_id": None, "agent_id": None}.'
        )
