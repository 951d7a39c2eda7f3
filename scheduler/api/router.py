"""The router of the API, and how an operation of it is declared."""

import inspect
from collections.abc import Callable, Collection, Mapping
from copy import deepcopy
from typing import Any, TypeVar

from ninja import Router

from scheduler.api.among import within
from scheduler.api.answers import answered
from scheduler.api.auth import AUTHENTICATORS, authenticators
from scheduler.api.parameters import knowing_all
from scheduler.api.problem import PROBLEM_JSON, ProblemOut
from scheduler.api.rights import Right, needing

V = TypeVar("V", bound=Callable[..., Any])

ALWAYS = (400, 401, 403, 413, 422, 503)
"""What every operation may answer: the request cannot be read, or may not be made, or the database is away."""
PROBLEM = {"content": {PROBLEM_JSON: {"schema": {"$ref": f"#/components/schemas/{ProblemOut.__name__}"}}}}

TAGS = {
    "schedule": "jobs",
    "runs": "runs",
    "groups": "groups",
    "pause": "groups",
    "resume": "groups",
    "activity": "activity",
}
"""What an operation is about, by the first part of its path, for the pages of the document; the rest: scheduler."""

router = Router(auth=AUTHENTICATORS)
router.add_decorator(answered, mode="view")


def operation(
    method: str, path: str, *, right: Right, answers: Mapping[int, Any], refuses: Collection[int] = ()
) -> Callable[[V], V]:
    """Declare an operation: the right that it takes, what it answers, and with which statuses it refuses."""

    def declare(view: V) -> V:
        summary, _, rest = inspect.cleandoc(view.__doc__ or "").partition("\n")
        done: dict[int, Any] = {**answers, **({304: None} if method == "GET" else {})}
        problems = sorted({*ALWAYS, *refuses})
        router.api_operation(
            [method],
            path,
            auth=authenticators(right),
            response={**done, **dict.fromkeys(problems, ProblemOut)},
            operation_id=view.__name__,
            tags=[TAGS.get(path.split("/")[1], "scheduler")],
            summary=summary.rstrip("."),
            description=rest.strip(),
            openapi_extra={"responses": {status: deepcopy(PROBLEM) for status in problems}, "x-permission": str(right)},
        )(needing(right)(knowing_all(within(right, path)(view))))
        return view

    return declare
