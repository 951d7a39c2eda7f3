"""Removal: jobs that people added, and those whose code is gone."""

from scheduler.arguments import checked_text
from scheduler.engine.base import Engine
from scheduler.engine.control.definition import kept_still
from scheduler.engine.control.lookup import get_job
from scheduler.engine.control.versions import IfVersion, refuse_other_version, unchanged
from scheduler.engine.events import event, write_events
from scheduler.exceptions import Refused
from scheduler.models import EventKind, Job
from scheduler.registry import NOT_IMPORTED, registry


def remove_job(name: str, *, actor: str = "", if_version: IfVersion = None) -> None:
    """Delete a job with its runs; refused for a job the code defines, which would come back at the next start.

    Raises Refused with code `code_owned`, or `changed` as `update_job`.
    """
    checked_text("actor", actor)
    job = get_job(name)
    refuse_other_version(name, job, if_version)
    if code_owns(job):
        text = f"{name!r} is defined in {job.source}; disable it, or remove its @register and start the scheduler once."
        raise Refused(text, code="code_owned")
    with unchanged(name, if_version):
        write_events(Engine().using, [event(job, EventKind.DELETED, None, actor=actor)])
        job.delete()


def remove_orphans(*, dry_run: bool = False, actor: str = "") -> list[str]:
    """Delete the jobs whose task no code registers any more, with their runs; returns their names.

    Those of a module that could not be imported stay, and those whose run still goes on.
    """
    orphans = Job.objects.filter(orphaned_at__isnull=False, active_runs=0).exclude(problem__contains=NOT_IMPORTED)
    gone = [job for job in orphans if job.task not in registry and not registry.failed_module(job.source)]
    if not dry_run:
        gone = [job for job in gone if _remove_orphan(job, actor)]
    return [job.name for job in gone]


def _remove_orphan(job: Job, actor: str) -> bool:
    """Delete an orphan, unless its code has come back since it was read."""
    with kept_still(job.pk):
        deleted, _ = Job.objects.filter(pk=job.pk, orphaned_at__isnull=False, active_runs=0).delete()
        write_events(Engine().using, [event(job, EventKind.DELETED, None, actor=actor)] if deleted else [])
    return bool(deleted)


def code_owns(job: Job) -> bool:
    """Whether code defines the job, here or in another process, and would bring it back.

    Of code elsewhere the mark of an orphan tells, as long as the job was not given another task.
    """
    is_served = job.orphaned_at is None and job.task == job.name
    return bool(job.source) and (job.name in registry or is_served)
