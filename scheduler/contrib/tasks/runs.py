"""Runs: from a result to its rows in the run log, for the progress, the log and the page in the admin."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from scheduler.models import RunLog


def find_run(result_id: str) -> "RunLog | None":
    """Return the newest attempt of the task that a result belongs to, by one query; None for an unknown id."""
    from scheduler.contrib.tasks.ledger import rows_of

    return rows_of(result_id).order_by("-attempt").first()
