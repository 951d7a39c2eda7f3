"""Circles: jobs of the code that would wait for each other, together with what people and other services made."""

import logging
from typing import Any

from scheduler.engine.base import Engine
from scheduler.engine.db.transactions import rewrite
from scheduler.engine.events import CODE
from scheduler.exceptions import InvalidSchedule
from scheduler.models import Job
from scheduler.models.job_columns import CLOSES, NO_PLAN, to_replan
from scheduler.schedules import dependent_kinds, refuse_cycle

logger = logging.getLogger("scheduler")


def set_circles_aside(engine: Engine) -> None:
    """Set the jobs aside whose code closes a circle, which nothing would ever begin; let those go on that no longer do.

    Import refuses a circle within one code base, and saving a job one in the database; this finds circles across both.
    """
    if not any(task.schedule.is_dependent for task in engine.registry):
        return
    jobs = Job.objects.using(engine.using).filter(schedule_kind__in=dependent_kinds()).order_by("name")
    found = [job for job in jobs if job.schedule.is_dependent]
    parents = {job.name: job.schedule.parents for job in found if not job.problem.startswith(CLOSES)}
    for job in found:
        if _is_of_our_code(engine, job):
            _judge(engine, job, parents)


def _is_of_our_code(engine: Engine, job: Job) -> bool:
    """Whether the schedule of a job is what the code of this process says, and no person's."""
    return job.name in engine.registry and bool(job.source) and "schedule" not in job.overridden_fields


def _judge(engine: Engine, job: Job, parents: dict[str, tuple[str, ...]]) -> None:
    """Set one job aside, or let it go on; `parents` are those of the jobs that are not set aside."""
    rows = Job.objects.using(engine.using).filter(pk=job.pk, schedule=job.schedule)  # unchanged since
    try:
        refuse_cycle(job.name, job.schedule, lambda name: parents.get(name, ()))
    except InvalidSchedule as error:
        parents.pop(job.name, None)
        if job.problem.startswith(CLOSES):
            return
        problem = f"{CLOSES}{error}"
        columns = {"problem": problem, **NO_PLAN}
        if rewrite(rows, lambda _: columns, actor=CODE):
            logger.error("Job %r: %s", job.name, problem, extra={"action": "job_refused", "job": job.name})
        return
    parents[job.name] = job.schedule.parents
    if job.problem.startswith(CLOSES):
        rewrite(rows, _going_on, actor=CODE)


def _going_on(job: Job) -> dict[str, Any]:
    """Return the columns of a job that goes on; none where another process has just let it."""
    return {"problem": "", **to_replan()} if job.problem.startswith(CLOSES) else {}
