"""Living runs: the few rows that are open, whatever the size of the ledger."""

from typing import Any

from django.db.models import QuerySet
from django.db.models.functions import Length

from scheduler.models import LONG_AGO, Job, RunLog


def living_runs(job: Job, among: QuerySet[RunLog]) -> list[RunLog]:
    """Return the living runs of a job. The bound on `due_at` lets the index of open runs answer."""
    runs = RunLog.objects.living().filter(due_at__gt=LONG_AGO).defer("log", "error", "result")
    living = {run.pk: run for run in runs if run.job_id == job.pk}
    seen = among.filter(pk__in=living).values_list("pk", flat=True) if living else ()
    return [living[pk] for pk in seen]


def news_of_living(job: Job) -> list[Any]:
    """Return what changes while the runs of a job live: progress, and the length of their logs."""
    runs = RunLog.objects.living().filter(due_at__gt=LONG_AGO)
    rows = runs.values_list("job_id", "pk", "progress", Length("log"), "stop_requested_at")
    return [row for row in rows if row[0] == job.pk]
