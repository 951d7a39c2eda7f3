"""Runs of all jobs."""

from typing import Annotated

from django.http import HttpRequest
from ninja import Query

from scheduler.api.among import jobs_among
from scheduler.api.parameters import Filters, Number
from scheduler.api.rights import Right, actor_of, require
from scheduler.api.router import operation
from scheduler.api.schemas.base import Json
from scheduler.api.schemas.run import RunLogOut, RunOut, RunPage, run_out
from scheduler.api.telling import told_runs
from scheduler.engine.control import cancel_run as cancel
from scheduler.engine.views.stats import get_run


@operation("GET", "/runs", right=Right.VIEW_RUNS, answers={200: RunPage})
def list_runs(request: HttpRequest, filters: Filters) -> Json:
    """List the runs of all jobs, the newest first."""
    return told_runs(filters, among=jobs_among(request, Right.VIEW_RUNS))


@operation("GET", "/runs/{run_id}", right=Right.VIEW_RUNS, answers={200: RunOut}, refuses=[404])
def read_run(request: HttpRequest, run_id: Number) -> Json:
    """Read a run."""
    return run_out(get_run(run_id))


@operation("GET", "/runs/{run_id}/log", right=Right.VIEW_RUNS, answers={200: RunLogOut}, refuses=[404])
def read_log(
    request: HttpRequest,
    run_id: Number,
    offset: Annotated[int, Query(0, ge=0, le=10_000_000, description="Characters that the caller has already.")],
) -> Json:
    """Read the log of a run; while it goes on, what has been written so far."""
    run = get_run(run_id)
    return {
        "run_id": run.pk,
        "status": run.status,
        "log": run.log[offset:],
        "next_offset": max(offset, len(run.log)),
    }


@operation("POST", "/runs/{run_id}/cancel", right=Right.RUN, answers={200: RunOut}, refuses=[404, 409])
def cancel_run(request: HttpRequest, run_id: Number) -> Json:
    """Cancel a run that waits, or ask one that runs to stop.

    It takes the permission `view_runlog` too.
    """
    require(request, Right.VIEW_RUNS)
    return run_out(cancel(run_id, actor=actor_of(request)))
