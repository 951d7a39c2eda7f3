"""Standing: the state and the next slot of every job, from one query, with the time by the database."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from scheduler.engine.base import Engine
from scheduler.engine.db.fast_read import part_of, read_values
from scheduler.engine.db.shared_time import beside_rows, shared_now
from scheduler.engine.views.job_view import next_slot_of, state_of
from scheduler.engine.views.pauses import HELD
from scheduler.models import Job, JobState

COLUMNS = (
    "name", "schedule", "policy", "enabled", "next_run_at", "wake_at", "active_runs", "consecutive_failures",
    "broken_at", "paused_at", "orphaned_at", "problem", "last_finished_at", "last_success_at", "last_outcome_at",
    "source",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Standing:
    """How a job stands, as `JobView` says it; its other columns are loaded when they are asked for."""

    job: Job
    state: JobState
    next_slot: datetime | None


def standings() -> tuple[datetime, list[Standing]]:
    """Return the time by the database, and every job in the order of creation."""
    using = Engine().using
    jobs: Any = Job.objects.using(using).annotate(is_held=HELD, asked_at=beside_rows(using)).order_by("pk")
    rows = list(read_values(jobs.values_list("asked_at", "is_held", "id", *COLUMNS)))
    asked_at: datetime | None = rows[0][0] if rows else None
    now = shared_now(using) if asked_at is None else asked_at.replace(tzinfo=UTC)
    return now, [_standing(part_of(Job, using, ("id", *COLUMNS), row[2:]), held=bool(row[1])) for row in rows]


def _standing(job: Job, *, held: bool) -> Standing:
    return Standing(job, state_of(job, held), next_slot_of(job, held))
