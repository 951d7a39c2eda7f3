"""Calls: what a definition or a person gives to a task must be what its function takes."""

from collections.abc import Mapping
from typing import Any

from scheduler.exceptions import InvalidOption
from scheduler.models import Job
from scheduler.models.carriers import is_carrier
from scheduler.models.stored import Unreadable
from scheduler.placeholders import refuse_templates
from scheduler.policy import Policy
from scheduler.registry import registry


def refuse_wrong_call(job: Job, columns: Mapping[str, Any]) -> None:
    """Raise InvalidOption when columns give a job a task, kwargs or a schedule whose runs would raise TypeError, or
    kwargs that no run could render.

    A task that is not registered here cannot be asked. A job that only carries tasks that were enqueued is refused a
    schedule, too, another task, and another executor.
    """
    if is_carrier(job) and (wrong := {"task", "kwargs", "schedule"} & columns.keys()):
        raise InvalidOption(f"{job.name!r} only carries tasks that were enqueued; it takes no {min(wrong)}.")
    if is_carrier(job) and "policy" in columns:
        _refuse_other_executor(job, columns["policy"])
    kwargs = columns.get("kwargs", job.kwargs)
    if not isinstance(kwargs, Mapping):
        return
    if not columns.keys().isdisjoint(("task", "kwargs", "schedule")):
        task = registry.find(columns.get("task", job.task))
        schedule = columns.get("schedule", job.schedule)
        if task is not None and not isinstance(schedule, Unreadable):
            task.refuse_call(kwargs, schedule)
    if not columns.keys().isdisjoint(("kwargs", "policy")):
        refuse_wrong_templates(columns.get("policy", job.policy), kwargs)


def _refuse_other_executor(job: Job, policy: Policy) -> None:
    """Raise InvalidOption when a job that carries tasks would have them called elsewhere: they are called as its code
    says."""
    present = Policy() if isinstance(job.policy, Unreadable) else job.policy
    if policy.executor != present.executor:
        raise InvalidOption(
            f"{job.name!r} only carries tasks that were enqueued; its code decides on the executor.", field="executor"
        )


def refuse_wrong_templates(policy: Policy | Unreadable, kwargs: Mapping[str, Any]) -> None:
    """Raise InvalidOption for kwargs that no run could render, where the policy wants them rendered."""
    if not isinstance(policy, Unreadable) and policy.render_kwargs:
        refuse_templates(kwargs)
