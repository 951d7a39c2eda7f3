"""Versions: a change is made to the job as it was read, or not at all."""

from collections.abc import Collection, Iterator
from contextlib import contextmanager

from scheduler.engine.base import Engine
from scheduler.engine.db.transactions import write_transaction
from scheduler.exceptions import InvalidOption, Refused
from scheduler.models import Job
from scheduler.models.primary import locked
from scheduler.safetext import shown

IfVersion = Collection[str] | None
"""The `version_tag` of a job as it was read, or several of which one must fit; None: whatever it is."""
ANY_VERSION = "*"
"""In place of a version: whatever it is, as long as there is the job."""


@contextmanager
def unchanged(name: str, if_version: IfVersion) -> Iterator[None]:
    """A transaction that writes, and in which the job of this name keeps one of these versions until it is written.

    Raises Refused with code `changed`. The row is compared when it is locked, so of two writers who have read the same
    version one is refused. Without a version nothing is compared or locked.
    """
    using = Engine().using
    with write_transaction(using):
        if if_version is not None:
            rows = Job.objects.using(using).filter(name=name).only("pk", "version")
            refuse_other_version(name, locked(rows).first(), if_version)
        yield


def refuse_other_version(name: str, job: Job | None, if_version: IfVersion) -> None:
    """Raise Refused with code `changed` unless the job has one of these versions, or none is asked for."""
    tags = _checked(if_version)
    if tags is None or (job is not None and (ANY_VERSION in tags or job.version_tag in tags)):
        return
    what = "has been changed" if job is not None else "does not exist"
    raise Refused(f"{name!r} {what} since it was read; read it again.", code="changed")


def _checked(if_version: IfVersion) -> Collection[str] | None:
    tags = [if_version] if isinstance(if_version, str) else if_version
    if tags is None:
        return None
    if not isinstance(tags, Collection) or not all(isinstance(tag, str) for tag in tags):
        raise InvalidOption(f"if_version is {shown(if_version)}; it must be the version_tag of a job, or several.")
    return tags
