"""Last errors: what the last run of each of some jobs failed with, in one query."""

from collections.abc import Sequence

from django.db.models import OuterRef, Subquery

from scheduler.models import FAILURES, Job, RunLog


def last_errors(jobs: Sequence[Job]) -> dict[int, str]:
    """Return the error of the last run, by the keys of those of the jobs whose last run failed."""
    failed = [job.pk for job in jobs if job.last_status in FAILURES]
    if not failed:
        return {}
    runs = RunLog.objects.filter(job=OuterRef("pk")).exclude(error="").order_by("-scheduled_for", "-attempt")
    rows = Job.objects.filter(pk__in=failed).annotate(text=Subquery(runs.values("error")[:1]))
    return {pk: text for pk, text in rows.values_list("pk", "text") if text}
