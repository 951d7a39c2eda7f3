"""What all schemas share: instants as RFC 3339 says, and inputs that take nothing they do not know."""

import re
from datetime import datetime, timedelta
from typing import Annotated, Any

from ninja import Field, Schema
from pydantic import BaseModel, BeforeValidator, ConfigDict, PlainSerializer, WithJsonSchema

from scheduler.arguments import checked_instant
from scheduler.schedules.instants import instant_text


def milliseconds(length: timedelta | None) -> int | None:
    """Return a duration as all answers tell it; None where there is none."""
    return None if length is None else round(length.total_seconds() * 1000)


Instant = Annotated[
    datetime,
    PlainSerializer(instant_text, return_type=str),
    WithJsonSchema({"type": "string", "format": "date-time"}, mode="serialization"),
]
"""An instant (UTC) in an answer."""
Json = dict[str, Any]


def with_plus(text: str) -> str:
    """Return the text of an instant; in an address, the plus of an offset that was not escaped is a blank."""
    return re.sub(r"(?<=\d) (\d\d:?\d\d)$", r"+\1", text) if "T" in text.upper() else text


def _read(text: Any) -> Any:
    text = with_plus(text) if isinstance(text, str) else text
    if not isinstance(text, str) or not re.match(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d", text):
        raise ValueError("write an instant such as 2026-03-02T12:00:00Z")
    return checked_instant("it", datetime.fromisoformat(text.upper()))


Moment = Annotated[datetime, BeforeValidator(_read)]
"""An instant in a request: RFC 3339, with an offset."""


class Given(BaseModel):
    """What a body may hold: the fields that are named, of their types, and no other."""

    model_config = ConfigDict(extra="forbid", strict=True)


class PageOut(Schema):
    """A page of a list."""

    next_cursor: str | None = Field(description="`cursor` of the next page; null on the last one.")
