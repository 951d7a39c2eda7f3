"""By name: how each job and each task stands, for code that asks about one of them."""

from collections.abc import Mapping
from typing import Any

from scheduler.engine.views.job_view import next_slot_of, state_of
from scheduler.engine.views.pauses import HELD
from scheduler.models import Job
from scheduler.registry import registry


def by_name() -> dict[str, dict[str, Any]]:
    """Return every job by its name."""
    jobs: Any = Job.objects.light().annotate(is_held=HELD)
    return {
        job.name: {
            "task": job.task,
            "state": str(state_of(job, job.is_held).value),
            "running": job.active_runs > 0,
            "last_run_at": job.last_run_at,
            "last_status": job.last_status,
            "next_run_at": next_slot_of(job, job.is_held),
        }
        for job in jobs
    }


def by_task(runs: bool, here: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return every registered task by its name; its thread is the one that starts it, the dispatcher of this process.

    A database that does not answer raises its own error.
    """
    alive = runs and bool(here.get("threads", {}).get("dispatcher"))
    jobs: dict[str, list[Job]] = {task.name: [] for task in registry}
    for job in Job.objects.filter(task__in=list(jobs)).light():
        jobs[job.task].append(job)
    return {
        name: {
            "running": any(job.active_runs for job in of_task),
            "thread_alive": alive,
            "last_run_at": max(filter(None, (job.last_run_at for job in of_task)), default=None),
            "next_run_at": min(filter(None, (job.next_run_at for job in of_task if job.enabled)), default=None),
        }
        for name, of_task in jobs.items()
    }
