"""Runs of these tasks, as a claim leaves them, without a database."""

from datetime import UTC, datetime
from typing import Any

from scheduler.engine.base import Claimed
from scheduler.models import Job, RunLog, Status
from scheduler.registry import Task

SLOT = datetime(2026, 3, 2, 12, 0, 0, 123456, tzinfo=UTC)
TASKS = "tests.integration.process_tasks.tasks"


def claimed_run(
    task: str, kwargs: dict[str, Any], *, module: str = TASKS, trigger: str = "retry", **policy: Any
) -> Claimed:
    """Return a run that may start."""
    job = Job(pk=3, name=f"job of {task}", task=task, kwargs=kwargs, state={"cursor": 41}, last_run_at=SLOT)
    job.policy = policy
    job.clean_fields(exclude=["name"])
    run = RunLog(pk=7, job=job, scheduled_for=SLOT, attempt=2, token=9, trigger=trigger, status=Status.RUNNING)
    return Claimed(run, Task(name=task, function=lambda: None, module=module))
