"""Scheduled work inside the Django web process, on the database the project already has."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from scheduler.context import Postpone, RunContext, RunStopped, current_run
    from scheduler.engine.control import (
        add_job,
        aschedule_user_task,
        backfill,
        cancel_run,
        follow_code,
        get_job,
        get_queue_depths,
        list_jobs,
        pause_all,
        pause_group,
        pause_job,
        remove_job,
        reset_job,
        resume_all,
        resume_group,
        resume_job,
        run_now,
        schedule_user_task,
        update_job,
    )
    from scheduler.engine.explain import explain_slot
    from scheduler.engine.stats import get_run_stats, get_runs
    from scheduler.health import get_scheduler_status
    from scheduler.registry import Task, get_tasks, register
    from scheduler.runtime.activities import ActivityScheduler, get_scheduler, init_scheduler
    from scheduler.runtime.local import start, stop
    from scheduler.schedules import (
        AfterJobs,
        Cron,
        DailyAt,
        Every,
        Manual,
        Monthly,
        OnActivity,
        Once,
        Weekly,
    )

_HOMES = {
    "scheduler.context": ("Postpone", "RunContext", "RunStopped", "current_run"),
    "scheduler.engine.control": (
        "add_job",
        "aschedule_user_task",
        "backfill",
        "cancel_run",
        "follow_code",
        "get_job",
        "get_queue_depths",
        "list_jobs",
        "pause_all",
        "pause_group",
        "pause_job",
        "remove_job",
        "reset_job",
        "resume_all",
        "resume_group",
        "resume_job",
        "run_now",
        "schedule_user_task",
        "update_job",
    ),
    "scheduler.engine.explain": ("explain_slot",),
    "scheduler.engine.stats": ("get_run_stats", "get_runs"),
    "scheduler.health": ("get_scheduler_status",),
    "scheduler.registry": ("Task", "get_tasks", "register"),
    "scheduler.runtime.activities": ("ActivityScheduler", "get_scheduler", "init_scheduler"),
    "scheduler.runtime.local": ("start", "stop"),
    "scheduler.schedules": (
        "AfterJobs",
        "Cron",
        "DailyAt",
        "Every",
        "Manual",
        "Monthly",
        "OnActivity",
        "Once",
        "Weekly",
    ),
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}

__all__ = [
    "ActivityScheduler",
    "AfterJobs",
    "Cron",
    "DailyAt",
    "Every",
    "Manual",
    "Monthly",
    "OnActivity",
    "Once",
    "Postpone",
    "RunContext",
    "RunStopped",
    "Task",
    "Weekly",
    "add_job",
    "aschedule_user_task",
    "backfill",
    "cancel_run",
    "current_run",
    "explain_slot",
    "follow_code",
    "get_job",
    "get_queue_depths",
    "get_run_stats",
    "get_runs",
    "get_scheduler",
    "get_scheduler_status",
    "get_tasks",
    "init_scheduler",
    "list_jobs",
    "pause_all",
    "pause_group",
    "pause_job",
    "register",
    "remove_job",
    "reset_job",
    "resume_all",
    "resume_group",
    "resume_job",
    "run_now",
    "schedule_user_task",
    "start",
    "stop",
    "update_job",
]


def __getattr__(name: str) -> Any:
    """Import a public name when it is first asked for, so that `import scheduler` loads neither models nor croniter."""
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_HOME_OF[name]), name)
    globals()[name] = value
    return value
