"""Control: everything a person, the admin, a command or the API may do to jobs. The only way in for all surfaces."""

from scheduler.engine.control.again import enqueue_again
from scheduler.engine.control.calls import refuse_wrong_call
from scheduler.engine.control.definition import (
    add_job,
    add_job_once,
    checked_schedule,
    compare_job,
    follow_code,
    insert_job,
    kept_still,
    set_job,
    set_job_once,
    update_job,
    write_definition,
)
from scheduler.engine.control.forusers import has_users, names_no_user
from scheduler.engine.control.further import run_failed_again
from scheduler.engine.control.gate import ask_to_enable
from scheduler.engine.control.history import clear_history, get_job_events, job_once_named
from scheduler.engine.control.keyed import KeyedRequest, forget_keys
from scheduler.engine.control.known_groups import known_groups, refuse_unknown_group, unknown_group
from scheduler.engine.control.lookup import get_job, list_jobs
from scheduler.engine.control.once import acancel_once, arun_once, cancel_once, run_once
from scheduler.engine.control.pause import (
    pause_all,
    pause_group,
    pause_job,
    pause_jobs,
    reset_job,
    reset_jobs,
    resume_all,
    resume_group,
    resume_job,
    resume_jobs,
)
from scheduler.engine.control.removal import code_owns, remove_job, remove_orphans
from scheduler.engine.control.runs import backfill, cancel_run, run_now, run_now_once
from scheduler.engine.control.versions import ANY_VERSION
from scheduler.engine.control.wrong_fields import wrong_fields
from scheduler.options import ScheduleLike

__all__ = [
    "ANY_VERSION",
    "KeyedRequest",
    "ScheduleLike",
    "acancel_once",
    "add_job",
    "add_job_once",
    "arun_once",
    "ask_to_enable",
    "backfill",
    "cancel_once",
    "cancel_run",
    "checked_schedule",
    "clear_history",
    "code_owns",
    "compare_job",
    "enqueue_again",
    "follow_code",
    "forget_keys",
    "get_job",
    "get_job_events",
    "has_users",
    "insert_job",
    "job_once_named",
    "kept_still",
    "known_groups",
    "list_jobs",
    "names_no_user",
    "pause_all",
    "pause_group",
    "pause_job",
    "pause_jobs",
    "refuse_unknown_group",
    "refuse_wrong_call",
    "remove_job",
    "remove_orphans",
    "reset_job",
    "reset_jobs",
    "resume_all",
    "resume_group",
    "resume_job",
    "resume_jobs",
    "run_failed_again",
    "run_now",
    "run_now_once",
    "run_once",
    "set_job",
    "set_job_once",
    "unknown_group",
    "update_job",
    "write_definition",
    "wrong_fields",
]
