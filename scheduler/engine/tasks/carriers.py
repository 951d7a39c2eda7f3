"""Carriers: find, or make, the job that carries the tasks of one function. A process looks for each once."""

from dataclasses import dataclass
from typing import Any

from django.db import IntegrityError, connections, transaction

from scheduler.clock import SYSTEM_CLOCK
from scheduler.engine.db.transactions import write_transaction
from scheduler.exceptions import Refused
from scheduler.models import Job
from scheduler.models.job_columns import NO_PLAN
from scheduler.models.primary import locked
from scheduler.policy import Policy
from scheduler.schedules import Manual


@dataclass(frozen=True, slots=True, kw_only=True)
class Carrier:
    """What a job that carries tasks is made of. `source` marks it, so that no code or person takes it for its own."""

    name: str
    task: str
    source: str
    policy: Policy
    group: str = ""
    description: str = ""

    def columns(self) -> dict[str, Any]:
        """Return the columns that follow the code, whatever stood in them."""
        return {"task": self.task, "policy": self.policy, "group": self.group}


_known: dict[tuple[str, str], tuple[int, Carrier]] = {}
"""By database and name, the ids of jobs that are committed, and what they were made of."""


def job_of(using: str, carrier: Carrier) -> int:
    """Return the id of the job of a carrier; it may have been deleted since."""
    known = _known.get((using, carrier.name))
    return known[0] if known is not None and known[1] == carrier else _looked_for(using, carrier)


def forget(using: str, carrier: Carrier) -> None:
    """Look for a job again: it is gone."""
    _known.pop((using, carrier.name), None)


def forget_all(using: str) -> None:
    """Look for every job of a database again."""
    for known in [known for known in _known if known[0] == using]:
        _known.pop(known, None)


def _looked_for(using: str, carrier: Carrier) -> int:
    job = Job.objects.using(using).filter(name=carrier.name).first() or _made(using, carrier)
    if job.source != carrier.source:
        raise Refused(f"The job {carrier.name!r} is none that carries tasks; rename it.", code="exists")
    changed = {name: value for name, value in carrier.columns().items() if getattr(job, name) != value}
    kept = {name: value for name, value in changed.items() if name not in job.overridden_fields}
    if kept:
        Job.objects.using(using).filter(pk=job.pk).update(**kept, **NO_PLAN)
    pk: int = job.pk
    # Not before the commit: of a transaction that is rolled back nothing is left.
    transaction.on_commit(lambda: _known.update({(using, carrier.name): (pk, carrier)}), using=using)
    return pk


def _made(using: str, carrier: Carrier) -> Job:
    """Make the job, unless another process is faster. It has no plan: what it carries is promised one by one."""
    columns = carrier.columns() | {"source": carrier.source, "description": carrier.description, **NO_PLAN}
    job = Job(name=carrier.name, schedule=Manual(), created_at=SYSTEM_CLOCK.now(), **columns)
    outside = not connections[using].in_atomic_block
    try:
        with write_transaction(using) if outside else transaction.atomic(using=using):
            job.save(using=using, force_insert=True)
        return job
    except IntegrityError:
        with transaction.atomic(using=using):  # locked: an older snapshot of this transaction may not have it
            return _shared(using, carrier.name)


def _shared(using: str, name: str) -> Job:
    """Read a job that another process has just made. On MySQL all whose insert was refused hold a shared lock of it, so
    that none of them could get any other."""
    if connections[using].vendor != "mysql":
        return locked(Job.objects.using(using).filter(name=name)).get()
    table = connections[using].ops.quote_name(Job._meta.db_table)
    rows = Job.objects.using(using).raw(f"SELECT * FROM {table} WHERE name = %s LOCK IN SHARE MODE", [name])
    (job,) = rows
    return job
