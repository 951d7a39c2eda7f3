"""How a job stands, as the API tells it."""

from typing import Any

from django.utils.translation import gettext as _
from ninja import Field, Schema

from scheduler.api.schemas.base import Instant, Json, PageOut, milliseconds
from scheduler.engine.views.job_view import JobView
from scheduler.engine.views.pauses import Hold
from scheduler.engine.views.result import result_of, session_of
from scheduler.models import Job, JobState
from scheduler.models.run import COUNTERS
from scheduler.models.stored import Unreadable
from scheduler.policy.base import differences
from scheduler.policy.codec import plain

WAITS_IN_VAIN = (JobState.RUNNING, JobState.BROKEN)


class ScheduleOut(Schema):
    """When it runs."""

    text: str = Field(description="One line, such as `every 1h30m`, which can be sent back.")
    words: str = Field(description="The same in words.")
    data: Json | None = Field(description="The JSON form; null where the stored schedule cannot be read.")
    interval_seconds: float | None = Field(
        description="The interval; 0 while the job is disabled, null for other kinds of schedule."
    )


class PauseOut(Schema):
    """The pause that holds it."""

    of: str = Field(description="`job`, `group` or `everything`.")
    group: str | None = Field(description="The group that is paused.")
    since: Instant | None
    until: Instant | None = Field(description="Null: until it is resumed.")
    by: str
    reason: str


class OverrideOut(Schema):
    """A field that a person changed, of a job that the code defines."""

    field: str
    now: Any = None
    code: Any = Field(None, description="What the code says, where this process has it.")
    is_known: bool = Field(description="Whether this process has the code.")


class CountersOut(Schema):
    """What has ever happened; these only grow."""

    succeeded: int
    succeeded_with_errors: int = Field(description="Those among the successes that reported errors.")
    failed: int
    timed_out: int
    lost: int
    cancelled: int
    skipped: int
    missed: int


class JobOut(Schema):
    """A job and how it stands."""

    name: str
    shown_name: str = Field(description="Its name for people: of a job that carries enqueued tasks, their function.")
    task: str
    description: str
    group: str
    priority: int
    enabled: bool
    schedule: ScheduleOut
    policy: Json = Field(description="The options that differ from the defaults.")
    kwargs: Any = Field(description="The keyword arguments of its runs; null without `change_job`.")
    state: JobState
    reason: str = Field(description="Why it does not run now; empty where only the time has not come.")
    attention: str = Field(description="Why a person should look at it: broken, invalid, stuck, overdue, failing.")
    broken: bool
    running: bool
    pause: PauseOut | None
    next_run: Instant | None = Field(description="When it starts next; null while it is off, running or broken.")
    next_start_at: Instant | None = Field(
        description="As `next_run`, also while it runs, and of a broken job its probe."
    )
    next_run_at: Instant | None = Field(description="The slot that is planned next.")
    would_run_at: Instant | None = Field(description="The next slot if it were enabled, or once it is planned.")
    last_run: Instant | None = Field(description="When the last run began.")
    last_finished_at: Instant | None
    last_success_at: Instant | None
    last_status: str
    last_result: str | None = Field(
        description="`success`, `errors` (it succeeded and reported some), or how else the last run ended."
    )
    last_error: str | None = Field(description="What the last run failed with; null without `view_runlog`.")
    last_duration_ms: int | None
    consecutive_failures: int
    counters: CountersOut
    session_id: str | None = Field(description="The session that its task keeps, where it keeps one.")
    waiting_users: int | None = Field(description="Users who wait for a run; null of other jobs, or if not known.")
    source: str = Field(description="The module that defines it; empty for a job that people made.")
    overridden: list[OverrideOut]
    hidden_from_code: list[str] = Field(description="Fields of which the code says otherwise than a person.")
    created_at: Instant | None
    updated_at: Instant | None
    version: int = Field(description="Grows with each change of the row; part of the ETag.")


class Created(Schema):
    """What the write of a definition did."""

    created: bool = Field(description="Whether the job is new.")


class JobWritten(JobOut, Created):
    """A job as it is after a write."""

    next_run: Instant | None = Field(
        description="When it starts next; of a disabled job when it would, as `would_run_at`. Reads of a job say null"
        " there. Null while it is running or broken."
    )


class JobNamed(Schema):
    """A job, told to a caller without `view_job`."""

    name: str
    version: int = Field(description="Grows with each change of the row; part of the ETag.")


class JobWrittenNamed(JobNamed, Created):
    """A job after a write, told to a caller without `view_job`."""


class JobPage(PageOut):
    """Some jobs."""

    items: list[JobOut]


def job_out(view: JobView, errors: dict[int, str] | None, *, kwargs: bool) -> Json:
    """Return a job for `JobOut`; `errors` are those of last runs by key, None where the caller may not see them.

    `kwargs` says whether the caller may see keyword arguments.
    """
    job, last, waiting = view.job, view.last, view.waiting
    return {
        **{name: getattr(job, name) for name in ("name", "task", "description", "group", "priority", "enabled")},
        "shown_name": job.shown_name,
        "schedule": _schedule_out(job),
        "policy": {} if isinstance(job.policy, Unreadable) else _plain(differences(job.policy)),
        "kwargs": job.kwargs if kwargs else None,
        "state": view.state,
        "reason": view.reason,
        "attention": view.attention,
        "broken": view.state == JobState.BROKEN,
        "running": view.state == JobState.RUNNING,
        "pause": pause_out(view.held_by),
        "next_run": None if view.state in WAITS_IN_VAIN else view.next_start,
        "next_start_at": view.next_start,
        "next_run_at": view.next_slot,
        "would_run_at": view.would_run_at,
        "last_run": job.last_run_at,
        "last_finished_at": job.last_finished_at,
        "last_success_at": job.last_success_at,
        "last_status": job.last_status,
        "last_result": result_of(job.last_status, job.last_errors) if job.last_status else None,
        "last_error": (errors or {}).get(job.pk),
        "last_duration_ms": milliseconds(last.took if last else None),
        "consecutive_failures": job.consecutive_failures,
        "counters": _counters_out(job),
        "session_id": session_of(job),
        "waiting_users": waiting.users if waiting.has_users else None,
        "source": job.source,
        "overridden": [_override_out(one, kwargs=kwargs) for one in view.overridden],
        "hidden_from_code": list(view.hidden_from_code),
        **{name: getattr(job, name) for name in ("created_at", "updated_at", "version")},
    }


def _schedule_out(job: Job) -> Json:
    schedule = job.schedule
    if isinstance(schedule, Unreadable):
        return {"text": schedule.text, "words": "", "data": None, "interval_seconds": None}
    period = schedule.period
    seconds = None if period is None else period.total_seconds() if job.enabled else 0
    told = {"text": schedule.to_text(), "words": schedule.describe(_), "data": schedule.to_dict()}
    return told | {"interval_seconds": seconds}


def pause_out(hold: Hold | None) -> Json | None:
    """Return a pause for `PauseOut`."""
    if hold is None:
        return None
    of = "job" if hold.group is None else "group" if hold.group else "everything"
    told = {name: getattr(hold, name) for name in ("since", "until", "by", "reason")}
    return {"of": of, "group": hold.group or None, **told}


def _override_out(one: Any, *, kwargs: bool) -> Json:
    told: Json = one._asdict()
    if one.field == "kwargs" and not kwargs:
        return told | {"now": None, "code": None}
    return told | {name: _as_json(told[name]) for name in ("now", "code")}


def _plain(options: Json) -> Json:
    return {name: plain(value) for name, value in options.items()}


def _as_json(value: Any) -> Any:
    if isinstance(value, Unreadable):
        return value.text
    return value.to_dict() if hasattr(value, "to_dict") else plain(value)


def _counters_out(job: Job) -> Json:
    ended: Json = {str(status): getattr(job, column) for status, column in COUNTERS.items()}
    return ended | {"succeeded_with_errors": job.successes_with_errors}
