"""What all schemas share: instants as RFC 3339 says, and inputs that take nothing they do not know."""

import re
from datetime import datetime, timedelta
from typing import Annotated, Any, Self

from ninja import Field, Schema
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    ModelWrapValidatorHandler,
    PlainSerializer,
    ValidationError,
    WithJsonSchema,
    model_validator,
)
from pydantic_core import InitErrorDetails, PydanticCustomError

from scheduler.api.problem import UNKNOWN_FIELD
from scheduler.arguments import checked_instant, did_you_mean
from scheduler.safetext import shown
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

NO_OBJECT = ("model_type", "model_attributes_type")
"""What the framework calls the error of a body that is none; its words name a class of ours."""


class Given(BaseModel):
    """What a body may hold: the fields that are named, of their types, and no other."""

    model_config = ConfigDict(extra="forbid", strict=True)

    @model_validator(mode="wrap")
    @classmethod
    def _naming_near_fields(cls, data: Any, validate: ModelWrapValidatorHandler[Self]) -> Self:
        """Say of a field that is unknown which may be meant."""
        try:
            return validate(data)
        except ValidationError as error:
            told = [_told(one, list(cls.model_fields)) for one in error.errors(include_url=False)]
            raise ValidationError.from_exception_data(error.title, told) from None


def unknown_field(name: str, known: list[str]) -> str:
    """Return what is said of a field that a body may not hold."""
    hint = did_you_mean(name, known) or f" It takes {', '.join(known)}."
    return f"{shown(name)} is no field of this body.{hint}"


def _told(error: Any, known: list[str]) -> InitErrorDetails:
    kind, message, path = error["type"], error["msg"], error["loc"]
    if kind == UNKNOWN_FIELD:
        message = unknown_field(str(path[-1]), known)
    elif kind in NO_OBJECT:
        message = "write a JSON object"
    words = PydanticCustomError(kind, "{message}", {"message": message})
    return InitErrorDetails(type=words, loc=path, input=error["input"])


class PageOut(Schema):
    """A page of a list."""

    next_cursor: str | None = Field(description="`cursor` of the next page; null on the last one.")
