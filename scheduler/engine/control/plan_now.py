"""At once: plan jobs in the transaction that writes them, so that every reader sees their next slot."""

from django.db.models import QuerySet

from scheduler.engine.base import Engine
from scheduler.engine.claim import plan_these
from scheduler.engine.db.shared_time import shared_now
from scheduler.engine.db.transactions import may_be_of_one_row
from scheduler.models import AT_ONCE, Job, RunLog
from scheduler.signals import after_commit, job_resumed, run_missed


def plan_at_once(jobs: QuerySet[Job]) -> list[Job]:
    """Plan those of the jobs that wait for it, inside the transaction that has written them; return these as they are
    then.

    The next tick plans what cannot be planned here: jobs whose task another process registers, or whose plan the
    database refuses.
    """
    engine = Engine()
    unplanned = jobs.using(engine.using).filter(stale=True, wake_at=AT_ONCE, task__in=engine.registry.names())
    if not unplanned.exists():
        return []
    try:
        claims = plan_these(engine, unplanned, shared_now(engine.using))
    except Exception as error:
        if not may_be_of_one_row(error):
            raise
        return []
    for job in claims.resumed:
        after_commit(job_resumed, Job, using=engine.using, job=job, actor="")
    for run in claims.not_run:
        after_commit(run_missed, RunLog, using=engine.using, job=run.job, run=run)
    return claims.planned
