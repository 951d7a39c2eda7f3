"""Telling: jobs as the caller may see them."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.utils.encoding import iri_to_uri

from scheduler.api.among import reaches
from scheduler.api.parameters import RunFilters
from scheduler.api.problem import wrong
from scheduler.api.rights import Right, key_of, may
from scheduler.api.schemas.base import Json
from scheduler.api.schemas.job import job_out
from scheduler.api.schemas.run import run_out
from scheduler.engine.control import KeyedRequest, get_job
from scheduler.engine.views.job_view import JobView
from scheduler.engine.views.last_errors import last_errors
from scheduler.engine.views.pages import runs_page
from scheduler.models import Job, RunLog


def told(request: HttpRequest, views: list[JobView]) -> list[Json]:
    """Return jobs as the caller may see them."""
    errors = last_errors([view.job for view in views]) if may(request, Right.VIEW_RUNS) else None
    kwargs = may(request, Right.CHANGE)
    return [job_out(view, errors, kwargs=kwargs) for view in views]


def told_one(request: HttpRequest, response: HttpResponse, name: str) -> Json:
    """Return a job as it is now, with its version as the ETag of the answer; of one that the caller may not see, that
    it is there."""
    job = get_job(name)
    response["ETag"] = job.version_tag
    if not may(request, Right.VIEW) or not reaches(request, Right.VIEW, job):
        return {"name": job.name, "version": job.version}
    return told(request, [job.view])[0]


def told_runs(filters: RunFilters, job: Job | None = None, /, **more: Any) -> Json:
    """Return a page of runs of a job, or of all."""
    page = runs_page(job, **filters.model_dump(), **more)
    return {"items": [run_out(run) for run in page.items], "next_cursor": page.cursor or None}


def told_run(request: HttpRequest, run: RunLog) -> Json:
    """Return a run that the caller has asked for, as it may see it."""
    return run_out(run, details=may(request, Right.VIEW_RUNS) and reaches(request, Right.VIEW_RUNS, run.job))


def told_written(request: HttpRequest, response: HttpResponse, name: str, *, created: bool = False) -> Json:
    """Return a job after a write of its definition."""
    told = told_one(request, response, name) | {"created": created}
    return told if told.get("enabled", True) else told | {"next_run": told["would_run_at"]}


def keyed_of(request: HttpRequest, key: str, body: Any) -> KeyedRequest | None:
    """Return the request with its key, None without one; equal are those of one caller with equal addresses and bodies.

    Raises a problem for a key that is none.
    """
    if not key:
        return None
    if not key.isprintable():
        raise wrong("Idempotency-Key", "The Idempotency-Key holds unprintable characters.")
    return KeyedRequest.of(key, key_of(request), [request.method, request.path, body])


def address_of(request: HttpRequest, own: str, other: str) -> str:
    """Return the address of another operation, wherever the router is mounted; `own` is the end of this one's."""
    return str(iri_to_uri(request.path.removesuffix(own) + other))
