"""Result: how a run ended, in one word; and what a job keeps of its sessions."""

from scheduler.models import Job, Status

SESSION = "session_id"
"""The key under which a task that has a session at some service keeps its id in `context.state`."""


def result_of(status: str, errors: int) -> str:
    """Return how a run ended in one word: a success that reported errors is `errors`."""
    if status != Status.SUCCEEDED:
        return str(status)
    return "errors" if errors else "success"


def session_of(job: Job) -> str | None:
    """Return the session that the task of a job keeps, None where it keeps none."""
    kept = job.state.get(SESSION) if isinstance(job.state, dict) else None
    return str(kept) if isinstance(kept, str | int) and not isinstance(kept, bool) else None
