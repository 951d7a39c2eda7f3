"""Jobs: those that carry tasks are read beside them. A join would lock them, too, on MariaDB."""

from functools import lru_cache

from scheduler.engine.base import Engine
from scheduler.engine.db.fast_read import CompiledQuery, read_rows
from scheduler.models import Job, RunLog

NAMES = [field.attname for field in Job._meta.concrete_fields]
FEW = 3
"""Jobs that are read by a statement each: Django takes longer to compile one for all of them."""
SOME_ID = -1


def with_jobs(engine: Engine, runs: list[RunLog]) -> list[RunLog]:
    """Give each of the rows its job."""
    jobs = _jobs(engine.using, {run.job_id for run in runs})
    for run in runs:
        run.job = jobs[run.job_id]
    return runs


def _jobs(using: str, ids: set[int]) -> dict[int, Job]:
    if len(ids) > FEW:
        return {job.pk: job for job in read_rows(Job.objects.using(using).filter(pk__in=ids))}
    rows = [values for pk in ids for values in _one_job(using).rows(pk)]
    return {job.pk: job for job in (Job.from_db(using, NAMES, values) for values in rows)}


@lru_cache(maxsize=16)
def _one_job(using: str) -> CompiledQuery:
    return CompiledQuery(Job.objects.using(using).filter(pk=SOME_ID), SOME_ID)
