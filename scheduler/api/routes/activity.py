"""Activity: what users did, and the runs that follow it."""

from typing import Annotated

from django.http import HttpRequest
from ninja import Path, Query
from ninja.responses import Status

from scheduler.activity.api import blocked_users, jobs_for_users, schedule_user_task, waiting_users
from scheduler.api.among import jobs_among
from scheduler.api.parameters import Filters
from scheduler.api.problem import ApiProblem
from scheduler.api.rights import Right
from scheduler.api.router import operation
from scheduler.api.schemas.activity import ActivitiesOut, ActivityGiven, ActivityNoted, BlockedOut
from scheduler.api.schemas.base import Json
from scheduler.api.schemas.run import RunPage
from scheduler.api.telling import told_runs
from scheduler.conf import conf
from scheduler.engine.control import get_job
from scheduler.models import Job

TaskName = Annotated[str, Path(description="The name of a job that follows what users do.")]
UserKey = Annotated[str | None, Query(None, description="Runs for this user.")]


@operation("GET", "/activity", right=Right.VIEW, answers={200: ActivitiesOut})
def read_activities(request: HttpRequest) -> Json:
    """Tell how many users wait for a run of each job."""
    among = jobs_among(request, Right.VIEW)
    reached = None if among is None else set(among.values_list("pk", flat=True))
    jobs = [job for job in jobs_for_users() if reached is None or job.pk in reached]
    depths = waiting_users(jobs)
    return {
        "max_concurrent": conf.MAX_CONCURRENT,
        "queue_depths": depths,
        "items": [
            {
                "task": job.name,
                "waiting_users": depths[job.name],
                "interval_seconds": job.schedule.interval.total_seconds(),
                "max_retries": job.schedule.max_retries,
            }
            for job in jobs
        ],
    }


@operation("POST", "/activity/{task}", right=Right.RUN, answers={202: ActivityNoted}, refuses=[404, 409])
def note_activity(request: HttpRequest, task: TaskName, body: ActivityGiven) -> Status[Json]:
    """Tell of an activity of a user: one run of the task follows an interval later."""
    accepted = schedule_user_task(task, body.user_id, body.device_id, body.agent_id)
    if not accepted:
        _refuse_deaf(task)
    return Status(202, {"task": task, "accepted": accepted})


@operation("GET", "/activity/{task}/runs", right=Right.VIEW_RUNS, answers={200: RunPage}, refuses=[404])
def list_runs_for_users(request: HttpRequest, task: TaskName, user_key: UserKey, filters: Filters) -> Json:
    """List the runs of a task for its users, the newest first."""
    return told_runs(filters, get_job(task), actor=user_key)


@operation("GET", "/activity/{task}/blocked", right=Right.VIEW_RUNS, answers={200: BlockedOut}, refuses=[404, 409])
def list_blocked_users(request: HttpRequest, task: TaskName) -> Json:
    """List the users whose runs have failed too often in a row."""
    entries = blocked_users(_job_for_users(task))
    return {
        "items": [
            {
                "user_key": entry.user_key,
                "failures": entry.failures,
                "until": entry.failures_until,
                "last_executed_at": entry.last_executed_at,
            }
            for entry in entries
        ]
    }


def _refuse_deaf(task: str) -> None:
    """Raise the reason for which a job took no activity at all."""
    if not _job_for_users(task).enabled:
        raise ApiProblem("disabled", f"{task!r} is disabled.")


def _job_for_users(task: str) -> Job:
    job = get_job(task)
    if not job.schedule.for_users:
        raise ApiProblem("not_for_users", f"{task!r} does not follow what users do: its schedule is “{job.schedule}”.")
    return job
