"""Act: run, pause, resume and reset a job."""

from typing import Annotated, Any

from django.http import HttpRequest, HttpResponse
from ninja import Body
from ninja.responses import Status

from scheduler.api.etag import versions_in
from scheduler.api.parameters import IdempotencyKey, IfMatch, Name
from scheduler.api.rights import Right, actor_of, require
from scheduler.api.router import operation
from scheduler.api.schemas.base import Json
from scheduler.api.schemas.job import JobNamed, JobOut
from scheduler.api.schemas.run import PauseGiven, RunGiven, RunOut
from scheduler.api.telling import address_of, keyed_of, told_one, told_run
from scheduler.engine import control

REFUSES = (404, 409, 412)
WRITTEN: Any = {200: JobOut | JobNamed}


@operation("POST", "/schedule/{name}/run", right=Right.RUN, answers={202: RunOut}, refuses=[404, 409, 429])
def run_job(
    request: HttpRequest,
    response: HttpResponse,
    name: Name,
    body: Annotated[RunGiven, Body(RunGiven())],
    idempotency_key: IdempotencyKey,
) -> Status[Json]:
    """Run a job now, beside its schedule.

    The answer is a promise: the scheduler runs it, and `Location` tells how it goes. Keyword arguments of its own take
    the permission `change_job` too.
    """
    if body.kwargs is not None:
        require(request, Right.CHANGE)
    keyed, actor = keyed_of(request, idempotency_key, body.kwargs), actor_of(request)
    if keyed is None:
        run = control.run_now(name, kwargs=body.kwargs, actor=actor)
    else:
        run = control.run_now_once(keyed, name, kwargs=body.kwargs, actor=actor)
    response["Location"] = address_of(request, f"/schedule/{name}/run", f"/runs/{run.pk}")
    return Status(202, told_run(request, run))


@operation("POST", "/schedule/{name}/pause", right=Right.PAUSE, answers=WRITTEN, refuses=REFUSES)
def pause_job(
    request: HttpRequest,
    response: HttpResponse,
    name: Name,
    body: Annotated[PauseGiven, Body(PauseGiven())],
    if_match: IfMatch,
) -> Json:
    """Stop a job from starting."""
    control.pause_job(
        name, until=body.until, reason=body.reason, actor=actor_of(request), if_version=versions_in(if_match)
    )
    return told_one(request, response, name)


@operation("POST", "/schedule/{name}/resume", right=Right.PAUSE, answers=WRITTEN, refuses=REFUSES)
def resume_job(request: HttpRequest, response: HttpResponse, name: Name, if_match: IfMatch) -> Json:
    """End a pause, and reset a broken job."""
    control.resume_job(name, actor=actor_of(request), if_version=versions_in(if_match))
    return told_one(request, response, name)


@operation("POST", "/schedule/{name}/reset", right=Right.PAUSE, answers=WRITTEN, refuses=REFUSES)
def reset_job(request: HttpRequest, response: HttpResponse, name: Name, if_match: IfMatch) -> Json:
    """Let a broken job run again."""
    control.reset_job(name, actor=actor_of(request), if_version=versions_in(if_match))
    return told_one(request, response, name)
