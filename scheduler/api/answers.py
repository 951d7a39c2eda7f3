"""Answers: what every operation has in common, in whatever NinjaAPI the router is mounted."""

import hashlib
import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.utils.cache import patch_cache_control, patch_vary_headers

from scheduler.api.etag import matches
from scheduler.api.problem import ApiProblem, problem_of, respond

LARGEST_BODY = 256 * 1024

Run = Callable[..., HttpResponseBase]


class OwnErrors:
    """The NinjaAPI of the host, whose handlers are for its own errors: those of our operations are told as problems."""

    def __init__(self, api: Any) -> None:
        self._api = api

    def __getattr__(self, name: str) -> Any:
        return getattr(self._api, name)

    def on_exception(self, request: HttpRequest, error: Exception) -> HttpResponse:
        """Return the answer for an error; one that is a defect goes the way of the host."""
        problem = problem_of(error)
        if problem is None:
            return self._api.on_exception(request, error)  # type: ignore[no-any-return]
        return respond(problem)


def answered(run: Run) -> Run:
    """Have an operation tell errors as problems, refuse large bodies, and answer what has not changed with 304."""
    operation = getattr(inspect.unwrap(run), "__self__", None)
    if operation is not None:
        operation.api = OwnErrors(operation.api)

    @wraps(run)
    def view(request: HttpRequest, **values: Any) -> HttpResponseBase:
        try:
            _refuse_large(request)
        except Exception as error:
            problem = problem_of(error)
            if problem is None:
                raise
            return respond(problem)
        return _finished(request, run(request, **values))

    return view


def _refuse_large(request: HttpRequest) -> None:
    sent = request.META.get("CONTENT_LENGTH") or ""
    length = int(sent) if sent.isdecimal() and len(sent) < 20 else 0
    if max(length, 0) > LARGEST_BODY or len(request.body) > LARGEST_BODY:
        raise ApiProblem("too_large", f"The body has more than {LARGEST_BODY} bytes.")


def _finished(request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
    """Return the answer with what caches need to know."""
    patch_cache_control(response, private=True, no_cache=True)
    patch_vary_headers(response, ["Authorization", "Cookie"])
    if request.method != "GET" or response.status_code != 200 or not isinstance(response, HttpResponse):
        if response.has_header("ETag"):
            response["ETag"] = f'"{response["ETag"]}"'
        return response
    digest = hashlib.sha256(response.content).hexdigest()[:16]
    response["ETag"] = f'"{response["ETag"]}-{digest}"' if response.has_header("ETag") else f'"{digest}"'
    if not matches(request.headers.get("If-None-Match", ""), response["ETag"]):
        return response
    unchanged = HttpResponse(status=304)
    for name in ("ETag", "Cache-Control", "Vary"):
        unchanged[name] = response[name]
    return unchanged
