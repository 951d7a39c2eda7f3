"""Jobs: how they stand."""

from typing import Annotated, Literal

from django.http import HttpRequest, HttpResponse
from ninja import Query

from scheduler.api.among import jobs_among
from scheduler.api.parameters import Cursor, Limit, Name
from scheduler.api.rights import Right
from scheduler.api.router import operation
from scheduler.api.schemas.base import Json
from scheduler.api.schemas.job import JobOut, JobPage
from scheduler.api.telling import told, told_one
from scheduler.engine.views.pages import LONGEST_TEXT, jobs_page
from scheduler.models import JobState

JobOrder = Literal["name", "-name", "next_run", "-next_run"]


@operation("GET", "/schedule", right=Right.VIEW, answers={200: JobPage})
def list_jobs(
    request: HttpRequest,
    state: Annotated[JobState | None, Query(None, description="Jobs in this state.")],
    group: Annotated[str | None, Query(None, description="Jobs of this group; empty: without one.")],
    task: Annotated[str | None, Query(None, description="Jobs of this task.")],
    enabled: Annotated[bool | None, Query(None, description="Whether they are enabled.")],
    text: Annotated[
        str, Query("", max_length=LONGEST_TEXT, description="A part of the name, the task or the description.")
    ],
    order: Annotated[JobOrder, Query("name", description="By what; with `-` the other way round.")],
    cursor: Cursor,
    limit: Limit,
) -> Json:
    """List jobs.

    A page costs a constant number of queries.
    """
    filters: Json = {"state": state, "task": task, "group": group, "enabled": enabled, "text": text}
    among = jobs_among(request, Right.VIEW)
    page = jobs_page(order=order, cursor=cursor, limit=limit, among=among, **filters)
    return {"items": told(request, page.items), "next_cursor": page.cursor or None}


@operation("GET", "/schedule/{name}", right=Right.VIEW, answers={200: JobOut}, refuses=[404])
def read_job(request: HttpRequest, response: HttpResponse, name: Name) -> Json:
    """Read a job."""
    return told_one(request, response, name)
