"""Carriers: jobs that only carry tasks that were enqueued. No schedule starts them, and no code removes them."""

from django.db.models import Q

from scheduler.models.job import Job
from scheduler.models.names import DJANGO_TASKS as DJANGO_TASKS

ONE_OFFS = "run once"
"""The source of a job that carries the runs of one task that `run_once` has promised."""
ONE_OFF_PREFIX = "once:"
"""How such a job is named, before the name of the task."""
SOURCES = (DJANGO_TASKS, ONE_OFFS)
"""No module has such a name."""
CARRIERS = Q(source__in=SOURCES)


def is_carrier(job: Job) -> bool:
    """Return whether a job only carries tasks."""
    return job.source in SOURCES
