"""Miscounts: jobs whose counter of living runs differs from their rows. Reads only."""

from dataclasses import dataclass

from django.db.models import Q

from scheduler.models import Job, RunLog
from scheduler.models.carriers import CARRIERS


@dataclass(frozen=True, slots=True)
class Miscount:
    """A job that counts `active` living runs and has `living`."""

    job: str
    active: int
    living: int


def miscounts() -> list[Miscount]:
    """Return the jobs whose counter is wrong, in three or four queries.

    Claims and ends change both in one transaction, and raise the version of the job: a job whose version is the same
    before and after its runs were counted was not changed in between.
    """
    jobs = Job.objects.filter(~CARRIERS).filter(
        Q(active_runs__gt=0) | Q(pk__in=RunLog.objects.living().order_by().values("job"))
    )
    before = list(jobs.order_by("name").values_list("pk", "name", "active_runs", "version"))
    if not before:
        return []
    living = RunLog.objects.living_by_job()
    found = {
        pk: (Miscount(name, active, living[pk]), seen) for pk, name, active, seen in before if active != living[pk]
    }
    if not found:
        return []
    after = dict(Job.objects.filter(pk__in=list(found)).values_list("pk", "version"))
    return [one for pk, (one, seen) in found.items() if after.get(pk) == seen]
