"""Readable: what a job asks for, as far as this process can read it."""

from scheduler.models import Job
from scheduler.policy import Policy


def policy_if_readable(job: Job) -> Policy | None:
    """Return the policies of a job; None where this process cannot read it."""
    return job.policy if job.is_readable else None
