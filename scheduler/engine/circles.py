"""Circles: jobs of the code that would wait for each other, together with what people and other services made."""

import logging

from scheduler.engine.base import Engine
from scheduler.exceptions import InvalidSchedule
from scheduler.models import UNPLANNED, Job
from scheduler.schedules import AfterJobs, refuse_cycle

logger = logging.getLogger("scheduler")

CLOSES = "What the code says of it closes a circle: "


def set_circles_aside(engine: Engine) -> None:
    """Set the jobs aside whose code closes a circle, which nothing would ever begin; let those go on that no longer do.

    Import refuses a circle within one code, and whoever saves a job one in the database: this one takes both.
    """
    if not any(isinstance(task.schedule, AfterJobs) for task in engine.registry):
        return
    jobs = Job.objects.using(engine.using).filter(schedule__contains='"after_jobs"').order_by("name")
    found = [job for job in jobs if isinstance(job.schedule, AfterJobs)]
    parents = {job.name: job.schedule.jobs for job in found if not job.problem.startswith(CLOSES)}
    for job in found:
        if job.name in engine.registry and job.source and "schedule" not in job.overridden_fields:
            _judge(engine, job, parents)


def _judge(engine: Engine, job: Job, parents: dict[str, tuple[str, ...]]) -> None:
    """Set one job aside, or let it go on; `parents` are those of the jobs that are not set aside."""
    rows = Job.objects.using(engine.using).filter(pk=job.pk, schedule=job.schedule)  # which nobody changed since
    try:
        refuse_cycle(job.name, job.schedule, lambda name: parents.get(name, ()))
    except InvalidSchedule as error:
        parents.pop(job.name, None)
        if job.problem.startswith(CLOSES):
            return
        problem = f"{CLOSES}{error}"
        if rows.update(problem=problem, next_run_at=None, next_start_at=None):
            logger.error("Job %r: %s", job.name, problem, extra={"action": "job_refused", "job": job.name})
        return
    parents[job.name] = job.schedule.jobs
    if job.problem.startswith(CLOSES):
        rows.update(problem="", next_start_at=UNPLANNED)
