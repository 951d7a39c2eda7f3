"""The ready API: a NinjaAPI with the router, its OpenAPI document and pages for people."""

from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any

from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.views.decorators.csrf import csrf_exempt
from ninja import NinjaAPI
from ninja.openapi.schema import OpenAPISchema

from scheduler import __version__
from scheduler.api import router
from scheduler.api.auth import AUTHENTICATORS
from scheduler.api.problem import PROBLEM_JSON, ApiProblem, respond

NAMESPACE = "scheduler-api"

TAGS = [
    {"name": "jobs", "description": "How jobs stand, and what may be done to them."},
    {"name": "runs", "description": "Runs of all jobs."},
    {"name": "groups", "description": "Pause and resume groups, and everything."},
    {"name": "activity", "description": "Runs that follow what users do."},
    {"name": "scheduler", "description": "The scheduler as a whole, and schedules that are not stored."},
]
"""In this order the pages show them."""


class SchedulerAPI(NinjaAPI):
    """A NinjaAPI whose document names the one media type that its errors have."""

    def get_openapi_schema(self, **options: Any) -> OpenAPISchema:
        """Return the document."""
        schema = super().get_openapi_schema(**options)
        schema["paths"] = dict(sorted(schema["paths"].items(), key=_place))
        for path in schema["paths"].values():
            for one in path.values():
                for answer in one["responses"].values():
                    if PROBLEM_JSON in answer.get("content", ()):
                        answer["content"] = {PROBLEM_JSON: answer["content"][PROBLEM_JSON]}
        return schema


api = SchedulerAPI(
    title="Scheduler",
    version=__version__,
    description="Jobs of this project, how they stand, and what may be done to them.",
    urls_namespace=NAMESPACE,
    auth=AUTHENTICATORS,
    openapi_extra={"tags": TAGS},
)
api.add_router("", router)


def _place(item: tuple[str, Any]) -> tuple[int, str]:
    """Return where a path stands in the document: behind those of the tags before, and by its letters."""
    path, operations = item
    (tag,) = next(iter(operations.values()))["tags"]
    return [one["name"] for one in TAGS].index(tag), path


def telling_methods(patterns: Iterable[Any]) -> None:
    """Have views answer HEAD as they answer GET, and tell of methods that they do not have as of other errors."""
    for pattern in patterns:
        pattern.callback = _telling_methods(pattern.callback)


def _telling_methods(view: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(view)
    def answer(request: HttpRequest, *args: Any, **values: Any) -> Any:
        method = request.method
        request.method = "GET" if method == "HEAD" else method
        response = view(request, *args, **values)
        request.method = method  # by which servers leave the body out
        if not isinstance(response, HttpResponseNotAllowed):
            return response
        told = respond(ApiProblem("not_allowed", f"This address has the methods {response['Allow']}."))
        told["Allow"] = response["Allow"]
        return told

    return answer


@csrf_exempt
def no_such_address(request: HttpRequest) -> HttpResponse:
    """404 as the other errors are."""
    return respond(ApiProblem("not_found", "There is nothing at this address."))
