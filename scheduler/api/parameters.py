"""Parameters that several operations have, and what becomes of those that an operation does not have."""

import inspect
from collections.abc import Callable, Iterator
from functools import wraps
from typing import Annotated, Any, Literal, TypeVar, cast, get_args

from django.http import HttpRequest
from ninja import Field, Header, Path, Query, Schema
from ninja.params import models

from scheduler.api.problem import LONGEST_FIELD, ApiProblem, wrong
from scheduler.api.schemas.base import Given, Moment
from scheduler.arguments import did_you_mean
from scheduler.engine.views.pages import LARGEST_ID, MOST_ON_PAGE, NEWEST, OLDEST
from scheduler.models import Status, Trigger
from scheduler.safetext import shown

V = TypeVar("V", bound=Callable[..., Any])
SAYS_NOTHING = (b"", b"{}", b"null")
"""Bodies that clients send where there is nothing to say."""

Name = Annotated[str, Path(description="The name of the job.")]
Number = Annotated[int, Path(ge=1, le=LARGEST_ID, description="The number of the run.")]
Cursor = Annotated[str, Query("", description="`next_cursor` of the page before.")]
Limit = Annotated[int, Query(50, ge=1, le=MOST_ON_PAGE, description="Rows of a page.")]
Count = Annotated[int, Query(5, ge=1, le=MOST_ON_PAGE, description="How many slots.")]
Since = Annotated[Moment | None, Query(None, description="Slots from this instant on.")]
IfMatch = Annotated[
    str, Header("", alias="If-Match", description="The ETag of the job as it was read; 412 if it has changed since.")
]
IfNoneMatch = Annotated[
    str, Header("", alias="If-None-Match", description="`*`: create the job; 412 if there is one of this name.")
]
IdempotencyKey = Annotated[
    str,
    Header(
        "",
        alias="Idempotency-Key",
        max_length=255,
        description="Any text, a new one for each request: sent again within 24 hours, it is carried out once.",
    ),
]


class RunFilters(Schema):
    """Which runs of a list are told, and in which order."""

    status: Status | None = Field(None, description="Runs of this status.")
    trigger: Trigger | None = Field(None, description="Runs of this cause.")
    since: Moment | None = Field(None, description="Slots from this instant on.")
    until: Moment | None = Field(None, description="Slots before this instant.")
    order: Literal["-id", "id"] = Field(
        "-id", description=f"`{NEWEST}`: the newest first; `{OLDEST}`: the oldest first."
    )
    cursor: str = Field("", description="`next_cursor` of the page before.")
    limit: int = Field(50, ge=1, le=MOST_ON_PAGE, description="Rows of a page.")


Filters = Annotated[RunFilters, Query()]


def knowing_all(view: V) -> V:
    """Have a view refuse parameters of the query that it does not have, or that stand there twice: a filter with a slip
    in its name would let everything through. A view that reads no body refuses one that says something."""
    known, reads_body = list(_names(view)), _reads_body(view)

    @wraps(view)
    def checked(request: HttpRequest, *args: Any, **values: Any) -> Any:
        if errors := list(_wrong(request, known)):
            raise ApiProblem("wrong_value", " ".join(message for _, message in errors), errors)
        if not reads_body and request.method != "GET" and request.body.strip() not in SAYS_NOTHING:
            raise wrong("body", "This operation takes no body.")
        return view(request, *args, **values)

    return cast(V, checked)


def _reads_body(view: Callable[..., Any]) -> bool:
    kinds = (parameter.annotation for parameter in inspect.signature(view).parameters.values())
    return any(isinstance(one, type) and issubclass(one, Given) for kind in kinds for one in (kind, *get_args(kind)))


def _names(view: Callable[..., Any]) -> Iterator[str]:
    """Yield the names of what a view reads from the query."""
    for name, parameter in inspect.signature(view).parameters.items():
        kind, *notes = get_args(parameter.annotation) or [None]
        if any(isinstance(note, models.Query) for note in notes):
            yield from kind.model_fields if isinstance(kind, type) and issubclass(kind, Schema) else (name,)


def _wrong(request: HttpRequest, known: list[str]) -> Iterator[tuple[str, str]]:
    takes = f"It takes {', '.join(known)}." if known else "It takes none."
    for name, values in request.GET.lists():
        if name not in known:
            hint = did_you_mean(name, known)
            yield name[:LONGEST_FIELD], f"{shown(name)} is no parameter of this operation.{hint} {takes}"
        elif len(values) > 1:
            yield name, f"{name} is given {len(values)} times; give it once."
