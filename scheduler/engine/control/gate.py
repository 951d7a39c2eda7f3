"""Gates: a change that starts a job again asks the gate of its task first."""

from typing import Any

from scheduler.exceptions import Refused
from scheduler.models import Job, JobState
from scheduler.registry import Task, registry

Columns = dict[str, Any]
"""Columns of a job's row, each with its value."""


def ask_to_enable(job: Job, columns: Columns) -> Task | None:
    """Ask the gate of a job that these columns would start again, or a new one; returns the task that was asked.

    Raises Refused with code `gate_closed`. A gate may take its time, so ask outside of any transaction.
    """
    task = task_to_ask(job, columns)
    ask_gate(task)
    return task


def ask_gate(task: Task | None) -> None:
    """Raise Refused with code `gate_closed` when the gate of the task says no, or fails."""
    if task is not None and (reason := task.closed_gate()):
        raise Refused(f"{task.name!r} may not run; its gate is closed: {reason}", code="gate_closed")


def task_to_ask(job: Job, columns: Columns) -> Task | None:
    """Return the task with a gate of a job that these columns start again."""
    if not _starts_again(job, columns):
        return None
    task = registry.find(columns.get("task", job.task))
    return task if task is not None and task.gate is not None else None


def _starts_again(job: Job, columns: Columns) -> bool:
    """Whether a job that stood still would go on: it is enabled, leaves its broken state, or had no slots to come."""
    if not columns.get("enabled", job.enabled):
        return False
    if not job.enabled:
        return True
    if job.paused_at or job.orphaned_at or not {"schedule", "policy"} & columns.keys():
        return False
    if job.job_state == JobState.FINISHED:
        return True
    return "schedule" in columns and _stands_still(job) and not columns["schedule"].is_called_by_hand


def _stands_still(job: Job) -> bool:
    """Whether only another schedule, or a reset, would start an enabled job."""
    return bool(job.broken_at or job.problem) or getattr(job.schedule, "is_called_by_hand", True)
