"""Change: the definition of jobs."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from django.http import HttpRequest, HttpResponse
from ninja import Body
from ninja.responses import Status

from scheduler.api.etag import refuse_both, versions_in, wants_new
from scheduler.api.parameters import IdempotencyKey, IfMatch, IfNoneMatch, Name
from scheduler.api.problem import LONGEST_FIELD, ApiProblem, problem_of, wrong
from scheduler.api.rights import Right, actor_of, may, require
from scheduler.api.router import operation
from scheduler.api.schemas.base import Json, unknown_field
from scheduler.api.schemas.definition import JobPatch, JobPut, ScheduleForm
from scheduler.api.schemas.job import JobWritten, JobWrittenNamed
from scheduler.api.telling import keyed_of, told_written
from scheduler.arguments import did_you_mean, is_name
from scheduler.engine import control
from scheduler.exceptions import InvalidSchedule, Refused
from scheduler.models import Job
from scheduler.safetext import shown

FORMS = ("interval_seconds", "interval_minutes", "text", "cron", "type")
WRITTEN: Any = JobWritten | JobWrittenNamed


@operation(
    "PUT",
    "/schedule/{name}",
    right=Right.CHANGE,
    answers={200: WRITTEN, 201: WRITTEN},
    refuses=[409, 412],
)
def put_job(
    request: HttpRequest,
    response: HttpResponse,
    name: Name,
    body: JobPut,
    if_match: IfMatch,
    if_none_match: IfNoneMatch,
    idempotency_key: IdempotencyKey,
) -> Status[Json]:
    """Create a job, or replace its definition.

    What is left out has its default afterwards; `next_run` of a disabled job is when it would start. A new job takes
    the permission `add_job` too.
    """
    if not (is_name(name) and Job.objects.filter(name=name).exists()):
        require(request, Right.ADD)
    keyed = keyed_of(request, idempotency_key, body.model_dump(exclude_unset=True, mode="json"))
    given = {**_whole(name, body), "actor": actor_of(request)}
    versions = versions_in(if_match)
    if wants_new(if_none_match):
        refuse_both(versions)
        created = _add(request, keyed, name, given)
    else:  # who may not add a job makes none either where the present one is removed just now
        given["if_version"] = versions if versions is not None or may(request, Right.ADD) else [control.ANY_VERSION]
        set_job = control.set_job if keyed is None else partial(control.set_job_once, keyed)
        _, created = set_job(name, **given)
    return Status(201 if created else 200, told_written(request, response, name, created=created))


def _add(request: HttpRequest, keyed: control.KeyedRequest | None, name: str, given: Json) -> bool:
    """Create a job; returns whether this request did. Of several at once one does."""
    require(request, Right.ADD)
    try:
        return control.add_job_once(keyed, name, **given)[1]
    except Refused as refusal:
        if refusal.code != "exists":
            raise
        raise ApiProblem("changed", f"There is a job {name!r} already.") from refusal


@operation("PATCH", "/schedule/{name}", right=Right.CHANGE, answers={200: WRITTEN}, refuses=[404, 409, 412])
def patch_job(request: HttpRequest, response: HttpResponse, name: Name, body: JobPatch, if_match: IfMatch) -> Json:
    """Change single fields of a job.

    What is left out stays as it is; null clears a field where that may be. `{"enabled": false}` turns the job off, and
    `next_run` is when it would start.
    """
    control.get_job(name)
    return _update(request, response, name, if_match, _given(name, body))


@operation("DELETE", "/schedule/{name}", right=Right.DELETE, answers={204: None}, refuses=[404, 409, 412])
def delete_job(request: HttpRequest, name: Name, if_match: IfMatch) -> Status[None]:
    """Remove a job, its runs and its state.

    A job that code defines would come back at the next start, and is refused: disable it.
    """
    control.remove_job(name, actor=actor_of(request), if_version=versions_in(if_match))
    return Status(204, None)


@operation("PUT", "/schedule/{name}/schedule", right=Right.CHANGE, answers={200: WRITTEN}, refuses=[404, 409, 412])
def put_schedule(
    request: HttpRequest, response: HttpResponse, name: Name, body: Body[ScheduleForm], if_match: IfMatch
) -> Json:
    """Change when a job runs, and turn it on; an interval of 0 turns it off.

    Of an interval nothing but its length changes. A broken job is reset. Turning a job on asks its gate; turning it off
    asks nothing.
    """
    data = body.model_dump(exclude_unset=True)
    named = [form for form in FORMS if form in data]
    slips = [] if named else [name for name in data if name not in ScheduleForm.model_fields]
    if slips:
        raise wrong(slips[0][:LONGEST_FIELD] or "body", unknown_field(slips[0], list(FORMS)))
    if len(named) != 1:
        raise wrong(named[1] if named else "body", f"Give exactly one of {', '.join(FORMS)}.")
    job = control.get_job(name)
    changes = _OF_FORM[named[0]](job, data)
    if changes == OFF:
        return _update(request, response, name, if_match, changes)
    with _naming_what_was_sent(named[0]):
        changes = _checked(name, changes) | {"enabled": True}
        return _update(request, response, name, if_match, changes)


OFF = {"enabled": False}


@contextmanager
def _naming_what_was_sent(form: str) -> Iterator[None]:
    """Name the fields of the form that the caller chose, not those of the schedule that it became."""
    try:
        yield
    except (ApiProblem, InvalidSchedule) as error:
        problem = problem_of(error)
        if problem is None:
            raise
        found = [(_as_sent(form, field), message) for field, message in problem.errors]
        raise ApiProblem(problem.code, problem.detail, found) from error


def _as_sent(form: str, field: str) -> str:
    part = field.removeprefix("schedule").removeprefix(".")
    if form == "type":
        return part or "body"
    return part if form == "cron" and part == "timezone" else form


def _update(request: HttpRequest, response: HttpResponse, name: str, if_match: str, changes: Json) -> Json:
    control.update_job(name, actor=actor_of(request), if_version=versions_in(if_match), **changes)
    return told_written(request, response, name)


def _given(name: str, body: Any) -> Json:
    """Return the fields that were sent; raises a problem that names each wrong one."""
    return _checked(name, body.model_dump(exclude_unset=True))


def _whole(name: str, body: Any) -> Json:
    """Return the fields of a whole definition: without a task, that of the name of the job."""
    given: Json = body.model_dump(exclude_unset=True)
    if "task" in given:
        return _checked(name, given)
    given["task"] = name
    if errors := control.wrong_fields(name, given):
        if "task" in errors:
            errors["task"] = f"`task` is missing, so the task of the name of the job was looked for. {errors['task']}"
        raise _wrong_fields(errors)
    return given


def _checked(name: str, given: Json) -> Json:
    if errors := control.wrong_fields(name, given):
        raise _wrong_fields(errors)
    return given


def _wrong_fields(errors: dict[str, str]) -> ApiProblem:
    return ApiProblem("wrong_value", " ".join(errors.values()), list(errors.items()))


def _of_interval(job: Job, data: Json) -> Json:
    """Return the changes that an interval means: of a schedule that has one, the length alone."""
    _refuse_more(data, "interval_seconds", "interval_minutes")
    seconds = data["interval_seconds"] if "interval_seconds" in data else data["interval_minutes"] * 60
    if not seconds:
        return OFF
    present = job.schedule.to_dict() if job.schedule.is_interval else {"type": "every"}
    return {"schedule": present | {"seconds": seconds}}


def _of_text(job: Job, data: Json) -> Json:
    _refuse_more(data, "text")
    return {"schedule": data["text"]}


def _of_cron(job: Job, data: Json) -> Json:
    _refuse_more(data, "cron", "timezone")
    zone = {"timezone": data["timezone"]} if data.get("timezone") else {}
    return {"schedule": {"type": "cron", "expression": data["cron"], **zone}}


def _of_json(job: Job, data: Json) -> Json:
    return {"schedule": data}


def _refuse_more(data: Json, *known: str) -> None:
    for name in data.keys() - {*known}:
        raise wrong(name or "body", f"{shown(name)} has no meaning with {known[0]}.{did_you_mean(name, known)}")


_OF_FORM = {
    "interval_seconds": _of_interval,
    "interval_minutes": _of_interval,
    "text": _of_text,
    "cron": _of_cron,
    "type": _of_json,
}
