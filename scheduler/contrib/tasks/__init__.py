"""A backend for Django Tasks: what is enqueued runs in the processes that serve, with no worker and no broker."""

from scheduler.contrib.tasks.backend import SchedulerBackend
from scheduler.contrib.tasks.bulk import enqueue_many
from scheduler.contrib.tasks.runs import find_run

__all__ = ["SchedulerBackend", "enqueue_many", "find_run"]
