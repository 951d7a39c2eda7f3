"""Runs, as the API tells them."""

from typing import Any

from ninja import Field, Schema

from scheduler.api.schemas.base import Given, Instant, Json, Moment, PageOut, milliseconds
from scheduler.engine.views.result import result_of
from scheduler.models import OPEN, RunLog, Status, Trigger

LONGEST_REASON = 500


class RunOut(Schema):
    """A run, or a slot that had none."""

    run_id: int
    job: str = Field(description="The name of its job.")
    job_shown: str = Field(description="The name of its job for people; see `shown_name` of jobs.")
    task: str
    status: Status
    success: bool | None = Field(description="Whether it succeeded without errors; null while it has not ended.")
    result: str = Field(description="`success`, `errors`, or the status.")
    trigger: Trigger = Field(description="What caused it.")
    actor: str = Field(description="Who asked for it; of a run for a user, the key of the user.")
    user_key: str | None = Field(description="The key of the user whose activity caused it.")
    scheduled_for: Instant = Field(description="Its slot.")
    due_at: Instant | None = Field(description="When it may start, of one that waits.")
    started_at: Instant | None
    finished_at: Instant | None
    duration_ms: int | None
    attempt: int
    kwargs: Any = Field(None, description="Its own keyword arguments; null: those of the job.")
    reason: str
    note: str
    error: str
    returned: str = Field(description="What the task returned, as text.")
    totals: Json | None
    errors: int
    progress: Json | None
    coalesced: int = Field(description="Further slots that are counted on it.")
    stop_requested_at: Instant | None
    worker: str


class RunPage(PageOut):
    """Some runs."""

    items: list[RunOut]


class RunLogOut(Schema):
    """What a run has logged."""

    run_id: int
    status: Status
    log: str
    next_offset: int = Field(description="`offset` for what comes after.")


class RunGiven(Given):
    """How to run a job now."""

    kwargs: Json | None = Field(None, description="Keyword arguments in place of those of the job.")


class PauseGiven(Given):
    """Until when, and why."""

    until: Moment | None = Field(None, strict=False, description="Null: until it is resumed.")
    reason: str = Field("", max_length=LONGEST_REASON)


UNTOLD: Json = dict.fromkeys(("error", "returned", "reason", "note"), "") | dict.fromkeys(
    ("kwargs", "totals", "progress")
)


def run_out(run: RunLog, *, details: bool = True) -> Json:
    """Return a run for `RunOut`; without `details`, nothing that its task or its caller has written."""
    columns = (
        "status", "trigger", "actor", "scheduled_for", "due_at", "started_at", "finished_at", "attempt", "kwargs",
        "reason", "note", "error", "totals", "errors", "progress", "coalesced", "stop_requested_at", "worker",
    )  # fmt: skip
    told: Json = {
        "run_id": run.pk,
        "job": run.job.name,
        "job_shown": run.job.shown_name,
        "task": run.job.task,
        **{name: getattr(run, name) for name in columns},
        "success": None if run.status in OPEN else run.went_well,
        "result": result_of(run.status, run.errors),
        "user_key": run.actor if run.trigger == Trigger.ACTIVITY else None,
        "duration_ms": milliseconds(run.duration),
        "returned": run.result,
    }
    return told if details else told | UNTOLD
