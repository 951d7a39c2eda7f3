"""The ledger: what a job did, will do, and why it did not."""

from typing import Annotated

from django.http import HttpRequest
from ninja import Query

from scheduler.api.parameters import Count, Cursor, Filters, Limit, Name, Since
from scheduler.api.problem import wrong
from scheduler.api.rights import Right, may
from scheduler.api.router import operation
from scheduler.api.schemas.base import Json, with_plus
from scheduler.api.schemas.ledger import EventPage, StatsOut, UpcomingOut, WhyOut, event_out, slots_out
from scheduler.api.schemas.run import RunPage
from scheduler.api.telling import told_runs
from scheduler.engine.base import Engine
from scheduler.engine.control import get_job, job_once_named
from scheduler.engine.db.shared_time import shared_now
from scheduler.engine.explain.explain_slot import explain_text
from scheduler.engine.views.history import in_words
from scheduler.engine.views.pages import events_page
from scheduler.engine.views.preview import preview_of
from scheduler.engine.views.stats import get_run_stats
from scheduler.exceptions import InvalidOption
from scheduler.models import EventKind, JobEvent

OF_RUNS = (EventKind.BROKEN, EventKind.RECOVERED)
"""Events whose details tell of a run."""


@operation("GET", "/schedule/{name}/runs", right=Right.VIEW_RUNS, answers={200: RunPage}, refuses=[404])
def list_runs_of_job(request: HttpRequest, name: Name, filters: Filters) -> Json:
    """List the runs of a job, the newest first."""
    return told_runs(filters, get_job(name))


@operation("GET", "/schedule/{name}/upcoming", right=Right.VIEW, answers={200: UpcomingOut}, refuses=[404])
def read_upcoming(request: HttpRequest, name: Name, count: Count) -> Json:
    """Tell the next slots of a job.

    Of one that is stopped, those that it would have.
    """
    view = get_job(name).view
    preview = preview_of(view, shared_now(Engine().using), count)
    return {
        "planned": view.next_slot is not None,
        "next_start_at": view.next_start,
        "timezone": preview.timezone,
        "items": slots_out(preview),
    }


@operation("GET", "/schedule/{name}/stats", right=Right.VIEW_RUNS, answers={200: StatsOut}, refuses=[404])
def read_stats(request: HttpRequest, name: Name, since: Since) -> Json:
    """Tell how the runs of a job went."""
    return get_run_stats(get_job(name), since).to_dict()


@operation("GET", "/schedule/{name}/events", right=Right.VIEW, answers={200: EventPage}, refuses=[404])
def list_events(request: HttpRequest, name: Name, cursor: Cursor, limit: Limit) -> Json:
    """List what happened to a job besides runs, the newest first.

    The name may be one that the job had before, or that of a job that is gone. Values of keyword arguments are told
    with `change_job` only, and what is told of runs with `view_runlog`.
    """
    page = events_page(name, cursor=cursor, limit=limit)
    runs, kwargs = may(request, Right.VIEW_RUNS), may(request, Right.CHANGE)
    return {
        "items": [_told(one, runs=runs, kwargs=kwargs) for one in page.items],
        "next_cursor": page.cursor or None,
    }


@operation("GET", "/schedule/{name}/why", right=Right.VIEW_RUNS, answers={200: WhyOut}, refuses=[404])
def read_why(
    request: HttpRequest,
    name: Name,
    at: Annotated[
        str, Query("now", description="`now`, an instant, or a time such as `02:00` or `yesterday 02:00` of the job.")
    ],
) -> Json:
    """Tell why a job ran or did not run at an instant, or what keeps it now.

    The name may be one that the job had before.
    """
    job = job_once_named(name)
    try:
        return explain_text(job, with_plus(at)).to_dict()
    except InvalidOption as error:
        raise wrong("at", str(error)) from error


def _told(event: JobEvent, *, runs: bool, kwargs: bool) -> Json:
    happened = in_words(event)
    of_run = event.kind in OF_RUNS or "run" in event.data
    told = happened if kwargs else happened.without_kwargs()
    return event_out(event.pk, event.actor, told, details=runs or not of_run)
