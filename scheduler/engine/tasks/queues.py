"""Queues: how many tasks of each may go on at once, in all processes."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from django.conf import settings
from django.utils.module_loading import import_string

from scheduler.conf import conf

BACKEND = "scheduler.contrib.tasks.backend.SchedulerBackend"
PREFIX = "queue:"
"""How the groups of queues are named."""


def group_of(queue: str) -> str:
    """Return the group that a queue is, by which it is paused and limited."""
    return f"{PREFIX}{queue}"


def groups_of_queues() -> set[str]:
    """Return the groups of the queues that TASKS names."""
    named = [one.get("QUEUES", ["default"]) for one in _every_backend()]
    return {group_of(queue) for queues in named if isinstance(queues, Sequence) for queue in queues}


def most_by_group() -> Mapping[str, int]:
    """Return the places of limited groups: those of SCHEDULER_GROUPS, which come first, and of TASKS.

    In TASKS, `max_concurrent` of a backend holds for each of its queues.
    """
    limited: dict[str, int] = {}
    for params in _backends():
        most = (params.get("OPTIONS") or {}).get("max_concurrent")
        if isinstance(most, int) and not isinstance(most, bool) and most > 0:
            limited |= {group_of(queue): most for queue in params.get("QUEUES", ["default"])}
    return limited | dict(conf.GROUPS)


def has_backend() -> bool:
    """Return whether TASKS has a backend of ours, so that functions of Django Tasks run in these processes."""
    return any(_is_ours(one.get("BACKEND")) for one in _every_backend())


def _backends() -> list[Mapping[str, Any]]:
    return [one for one in _every_backend() if one.get("OPTIONS") and _is_ours(one.get("BACKEND"))]


def _every_backend() -> list[Mapping[str, Any]]:
    tasks = getattr(settings, "TASKS", None)
    return [one for one in tasks.values() if isinstance(one, Mapping)] if isinstance(tasks, Mapping) else []


@lru_cache(maxsize=64)
def _is_ours(path: Any) -> bool:
    """Return whether a path names our backend, or a subclass. What cannot be imported is said elsewhere."""
    try:
        kind = import_string(path)
    except Exception:
        return False
    ours = {f"{one.__module__}.{one.__qualname__}" for one in getattr(kind, "__mro__", ())}
    return BACKEND in ours
