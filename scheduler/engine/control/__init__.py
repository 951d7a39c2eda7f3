"""Control: everything a person, the admin, a command or the API may do to jobs. The only way in for all surfaces."""

from scheduler.engine.control.activity import (
    aschedule_user_task,
    get_queue_depths,
    schedule_user_task,
    waiting_users,
)
from scheduler.engine.control.definition import (
    ScheduleLike,
    add_job,
    ask_to_enable,
    checked_schedule,
    code_owns,
    follow_code,
    get_job,
    insert_job,
    kept_still,
    list_jobs,
    remove_job,
    update_job,
    write_definition,
)
from scheduler.engine.control.forusers import has_users, names_no_user
from scheduler.engine.control.history import clear_history
from scheduler.engine.control.pause import (
    pause_all,
    pause_group,
    pause_job,
    reset_job,
    resume_all,
    resume_group,
    resume_job,
)
from scheduler.engine.control.runs import backfill, cancel_run, run_now

__all__ = [
    "ScheduleLike",
    "add_job",
    "aschedule_user_task",
    "ask_to_enable",
    "backfill",
    "cancel_run",
    "checked_schedule",
    "clear_history",
    "code_owns",
    "follow_code",
    "get_job",
    "get_queue_depths",
    "has_users",
    "insert_job",
    "kept_still",
    "list_jobs",
    "names_no_user",
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
    "waiting_users",
    "write_definition",
]
