"""Jobs: those that carry tasks are read beside them. A join would lock them, too, on MariaDB."""

from collections.abc import Iterable

from scheduler.engine.base import Engine
from scheduler.models import Job, RunLog


def with_jobs(engine: Engine, rows: Iterable[RunLog]) -> list[RunLog]:
    """Return the rows, each with its job."""
    runs = list(rows)
    jobs = Job.objects.using(engine.using).in_bulk({run.job_id for run in runs}) if runs else {}
    for run in runs:
        run.job = jobs[run.job_id]
    return runs
