"""Overrides: the fields of a job that a person changed, with what the code says of each."""

from typing import Any, NamedTuple

from scheduler.engine.sync.follow_code import CODE_COLUMNS
from scheduler.engine.sync.overrides import hidden, value_of
from scheduler.models import Job
from scheduler.registry import registry


class Override(NamedTuple):
    """A field that a person changed. `code` is what the code says, where its task `is_known` in this process."""

    field: str
    code: Any
    now: Any
    is_known: bool


def overrides_of(job: Job) -> tuple[tuple[Override, ...], tuple[str, ...]]:
    """Return what a person changed of a job that the code defines, and which fields of the code that hides here."""
    if not job.overridden_fields:
        return (), ()
    task = registry.find(job.name)
    code = task.job_columns() if task is not None else {}
    now = {name: getattr(job, name) for name in CODE_COLUMNS}
    changed = (Override(name, value_of(code, name), value_of(now, name), bool(code)) for name in job.overridden_fields)
    return tuple(changed), tuple(hidden(job, code)) if code and job.source else ()
