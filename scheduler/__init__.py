"""Scheduled work inside the Django web process, on the database the project already has."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    __version__: str
    from scheduler.activity.api import aschedule_user_task, get_queue_depths, schedule_user_task
    from scheduler.context import Postpone, RunContext, RunStopped, current_run
    from scheduler.engine.control import (
        acancel_once,
        add_job,
        arun_once,
        backfill,
        cancel_once,
        cancel_run,
        follow_code,
        get_job,
        get_job_events,
        list_jobs,
        pause_all,
        pause_group,
        pause_job,
        remove_job,
        remove_orphans,
        reset_job,
        resume_all,
        resume_group,
        resume_job,
        run_now,
        run_once,
        set_job,
        update_job,
    )
    from scheduler.engine.explain.explain_slot import explain_slot
    from scheduler.engine.views.stats import get_run_stats, get_runs
    from scheduler.health import get_scheduler_status
    from scheduler.policy.executor import register_executor
    from scheduler.registry import Task, get_tasks, register
    from scheduler.runtime.activities import ActivityScheduler, get_scheduler, init_scheduler
    from scheduler.runtime.current import start, stop
    from scheduler.runtime.taking import run_attempt
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
    "scheduler.activity.api": ("aschedule_user_task", "get_queue_depths", "schedule_user_task"),
    "scheduler.context": ("Postpone", "RunContext", "RunStopped", "current_run"),
    "scheduler.engine.explain.explain_slot": ("explain_slot",),
    "scheduler.engine.views.stats": ("get_run_stats", "get_runs"),
    "scheduler.health": ("get_scheduler_status",),
    "scheduler.policy.executor": ("register_executor",),
    "scheduler.registry": ("Task", "get_tasks", "register"),
    "scheduler.runtime.activities": ("ActivityScheduler", "get_scheduler", "init_scheduler"),
    "scheduler.runtime.current": ("start", "stop"),
    "scheduler.runtime.taking": ("run_attempt",),
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
_OTHERS = "scheduler.engine.control"
"""The home of all that is not named above."""

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
    "acancel_once",
    "add_job",
    "arun_once",
    "aschedule_user_task",
    "backfill",
    "cancel_once",
    "cancel_run",
    "current_run",
    "explain_slot",
    "follow_code",
    "get_job",
    "get_job_events",
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
    "register_executor",
    "remove_job",
    "remove_orphans",
    "reset_job",
    "resume_all",
    "resume_group",
    "resume_job",
    "run_attempt",
    "run_now",
    "run_once",
    "schedule_user_task",
    "set_job",
    "start",
    "stop",
    "update_job",
]


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, "__version__"})


def __getattr__(name: str) -> Any:
    """Import a public name when it is first asked for, so that `import scheduler` loads neither models nor croniter."""
    if name == "__version__":
        from importlib.metadata import version  # slow to import

        return version("django-inprocess-scheduler")
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_HOME_OF.get(name, _OTHERS)), name)
    globals()[name] = value
    return value
