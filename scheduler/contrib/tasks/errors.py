"""Errors: what results name where no exception of the task itself ended it."""

from scheduler.exceptions import SchedulerError


class TaskLost(SchedulerError):
    """The process that ran the task died or was stopped, and no further attempt is made."""


class TaskCancelled(SchedulerError):
    """The task was cancelled, or was not run for another reason, which the text says."""
