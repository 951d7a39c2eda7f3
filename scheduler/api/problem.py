"""Problems: every error of the API as `application/problem+json` (RFC 9457), with a code that programs can rely on."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from django.core.exceptions import RequestDataTooBig
from django.db import InterfaceError, OperationalError
from django.http import Http404, HttpRequest, JsonResponse
from ninja import Field, Schema
from ninja.errors import HttpError, ValidationError
from ninja.errors import Throttled as TooMany

from scheduler.exceptions import (
    ActivityStoreUnavailable,
    InvalidOption,
    InvalidSchedule,
    Refused,
    UnknownGroup,
    UnknownJob,
    UnknownRun,
    UnknownTask,
)
from scheduler.safetext import masked, visible

PROBLEM_JSON = "application/problem+json"
TYPE = "urn:django-inprocess-scheduler:problem:"
LONGEST_DETAIL = 2000
MOST_ERRORS = 20
FIRST_WORD = re.compile(r"[a-z_]+")
WORD = re.compile(r"[a-z0-9_]+|[A-Z][A-Za-z]*-[A-Za-z-]+")
"""A field, or a header."""
UNKNOWN_FIELD = "extra_forbidden"
"""What the framework calls the error of a field that a body may not hold. The last part of its path is the field."""
LONGEST_FIELD = 100
TYPES = ("str", "float", "int", "bool", "constrained-str")

PROBLEMS: Mapping[str, tuple[int, str]] = {
    "unreadable": (400, "The request cannot be read"),
    "unauthenticated": (401, "Authentication is needed"),
    "invalid_token": (401, "The token opens nothing"),
    "csrf_failed": (403, "The CSRF token is missing or wrong"),
    "insufficient_scope": (403, "The token may only read"),
    "forbidden": (403, "The permission is missing"),
    "not_found": (404, "There is nothing of this name"),
    "not_allowed": (405, "The address has no such method"),
    "busy": (409, "The job is busy"),
    "gate_closed": (409, "The gate is closed"),
    "not_registered": (409, "The task is not registered in this process"),
    "orphaned": (409, "The task is gone from the code"),
    "invalid": (409, "The job cannot be read"),
    "exists": (409, "The name is taken"),
    "code_owned": (409, "The code defines this job"),
    "not_from_code": (409, "People made this job"),
    "ended": (409, "The run is over"),
    "disabled": (409, "The job is disabled"),
    "not_for_users": (409, "The job does not follow what users do"),
    "in_progress": (409, "The same request goes on"),
    "refused": (409, "The scheduler refuses this now"),
    "changed": (412, "The job has changed"),
    "too_large": (413, "The body is too large"),
    "wrong_value": (422, "A value is wrong"),
    "idempotency_key_reused": (422, "The key was sent with another request"),
    "too_many": (429, "Too many requests"),
    "away": (503, "The database does not answer"),
}
"""The status and the title of each code."""
RETRY_SECONDS: Mapping[str, int] = {"away": 5, "in_progress": 1}
"""The Retry-After of codes that pass by themselves."""
NO_CALLER = (
    "There is neither a token nor a session. Send `Authorization: Bearer TOKEN`; `manage.py scheduler_token create` or"
    " the admin makes a token. In a browser, sign in."
)
REALM = 'Bearer realm="scheduler"'
CHALLENGES: Mapping[str, str] = {
    "unauthenticated": REALM,
    "invalid_token": f'{REALM}, error="invalid_token"',
    "insufficient_scope": f'{REALM}, error="insufficient_scope"',
}
"""The WWW-Authenticate of codes, as RFC 6750 says."""


class ErrorOut(Schema):
    """One wrong value."""

    field: str = Field(description="The name of the field, the parameter or the header.")
    message: str = Field(description="What is wrong, and what to write.")


class ProblemOut(Schema):
    """An error (RFC 9457)."""

    type: str = Field(description="Identifies the kind of problem; ends with the code.")
    title: str = Field(description="What the code means.")
    status: int = Field(description="The HTTP status.")
    detail: str = Field(description="What is wrong this time, and what to do.")
    code: str = Field(description="One word for programs.")
    errors: list[ErrorOut] = Field(description="The fields that are wrong; empty where none is.")


class ApiProblem(Exception):
    """A problem that a route found."""

    headers: ClassVar[Mapping[str, str]] = {}

    def __init__(self, code: str, detail: str, errors: Sequence[tuple[str, str]] = ()) -> None:
        super().__init__(detail)
        self.code, self.detail, self.errors = code, detail, list(errors)


def wrong(field: str, message: str) -> ApiProblem:
    """Return the problem of one field with a wrong value."""
    return ApiProblem("wrong_value", message, [(field, message)])


def problem_of(error: BaseException) -> ApiProblem | None:
    """Return what an error means to the caller; None for one that is a defect, which the host reports."""
    match error:
        case ApiProblem():
            return error
        case UnknownGroup() | UnknownJob() | UnknownRun() | Http404():
            return ApiProblem("not_found", str(error))
        case Refused():
            return ApiProblem(error.code if error.code in PROBLEMS else "refused", str(error))
        case UnknownTask():
            return wrong("task", str(error))
        case InvalidSchedule() | InvalidOption():
            return wrong(_field_of(error), str(error))
        case ValidationError():
            return _of_validation(error)
        case RequestDataTooBig():
            return ApiProblem("too_large", str(error))
        case ActivityStoreUnavailable() | OperationalError() | InterfaceError():
            return ApiProblem("away", "The store does not answer; try again.")
        case HttpError():
            return _of_http(error)
    return None


def respond(problem: ApiProblem, request: HttpRequest | None = None) -> JsonResponse:
    """Return the answer that tells of a problem."""
    status, title = PROBLEMS[problem.code]
    body = {
        "type": TYPE + problem.code,
        "title": title,
        "status": status,
        "detail": _safe(problem.detail),
        "code": problem.code,
        "errors": [{"field": _safe(field), "message": _safe(text)} for field, text in problem.errors[:MOST_ERRORS]],
    }
    response = JsonResponse(body, status=status, content_type=PROBLEM_JSON)
    if problem.code in RETRY_SECONDS:
        response["Retry-After"] = str(RETRY_SECONDS[problem.code])
    if problem.code in CHALLENGES:
        response["WWW-Authenticate"] = CHALLENGES[problem.code]
    return response


def _field_of(error: InvalidSchedule | InvalidOption) -> str:
    """Return the field that an error is about: messages of options begin with it."""
    if isinstance(error, InvalidSchedule):
        return "schedule" if error.field == "schedule" else f"schedule.{error.field}"
    first = FIRST_WORD.match(str(error))
    return error.field or (first[0] if first else "")


def _of_validation(error: ValidationError) -> ApiProblem:
    found: dict[str, str] = {}
    for one in error.errors:
        path, text = one.get("loc", ()), str(one.get("msg", "")).removeprefix("Value error, ")
        field = str(path[-1])[:LONGEST_FIELD] if one.get("type") == UNKNOWN_FIELD else _named(path)
        found[field] = f"{found[field]}; or: {text}" if field in found else text
    told = (text if text.startswith(f"'{field}'") else f"{field}: {text}" for field, text in found.items())
    return ApiProblem("wrong_value", "; ".join(told), [*found.items()])


def _named(path: Sequence[Any]) -> str:
    """Return the field of an error, without the parameter that holds the body and the types of which one would fit."""
    where, *parts = [str(part) for part in path] or [""]
    named = [part for part in parts if WORD.fullmatch(part) and part not in TYPES]
    if where == "body" and named[:1] == ["body"]:
        named = named[1:]
    return ".".join(named) or where


def _of_http(error: HttpError) -> ApiProblem | None:
    """Return the problem of an error that the framework found."""
    if isinstance(error, TooMany):
        return ApiProblem("too_many", "Try again later.")
    if error.status_code == 401:
        return ApiProblem("unauthenticated", NO_CALLER)
    known = {400: "unreadable", 403: "forbidden", 404: "not_found"}
    code = known.get(error.status_code)
    return None if code is None else ApiProblem(code, str(error))


def _safe(text: str) -> str:
    cut = masked(text[: 2 * LONGEST_DETAIL])
    return visible(cut if len(cut) <= LONGEST_DETAIL else cut[: LONGEST_DETAIL - 1] + "…")
