"""Viewable: rows that a project hides from a person by a `has_view_permission` of its own.

Django's lists do not ask it for each row, and most projects do not write one: then nothing is asked here either.
"""

from collections.abc import Iterable
from typing import Any, TypeVar

from django.contrib.admin.options import BaseModelAdmin
from django.db.models import Model, QuerySet
from django.http import HttpRequest

from scheduler.models import Job, RunLog

M = TypeVar("M", bound=Model)

MOST_JOBS = 10_000
"""The method is asked about so many jobs in a request; it shows none that it was not asked about."""
MOST_RUNS = 2_000
"""So many of the newest runs on the page of a job."""


def hides_rows(asked: Any) -> bool:
    """Whether the project has given a ModelAdmin a `has_view_permission` of its own."""
    return getattr(asked.has_view_permission, "__func__", None) is not BaseModelAdmin.has_view_permission


def only_viewable(asked: Any, request: HttpRequest, rows: Iterable[M]) -> list[M]:
    """Return those of some rows that the person may view."""
    return [row for row in rows if asked.has_view_permission(request, row)] if hides_rows(asked) else list(rows)


def viewable_jobs(asked: Any, request: HttpRequest, jobs: QuerySet[Job]) -> QuerySet[Job]:
    """Return those of a query of jobs that the person may view; the method is asked once in a request."""
    if not hides_rows(asked):
        return jobs
    if not hasattr(request, "scheduler_viewable"):
        request.scheduler_viewable = None  # type: ignore[attr-defined]  # it may ask `get_queryset`, which asks here
        try:
            every = Job.objects.order_by("pk").defer("state")[:MOST_JOBS]
            request.scheduler_viewable = [job.pk for job in only_viewable(asked, request, every)]  # type: ignore[attr-defined]
        except BaseException:
            del request.scheduler_viewable  # type: ignore[attr-defined]
            raise
    known: list[int] | None = request.scheduler_viewable  # type: ignore[attr-defined]
    return jobs if known is None else jobs.filter(pk__in=known)


def viewable_runs(asked: Any, request: HttpRequest, runs: QuerySet[RunLog], job: Job) -> QuerySet[RunLog]:
    """Return those of the newest runs of a job that the person may view; all runs of the query where none is hidden."""
    if not hides_rows(asked):
        return runs
    newest = list(runs.filter(job=job).order_by("-scheduled_for", "-attempt")[:MOST_RUNS])
    for run in newest:
        run.job = job
    return runs.filter(pk__in=[run.pk for run in only_viewable(asked, request, newest)])
