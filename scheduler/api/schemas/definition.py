"""What people and programs may send of a job."""

from dataclasses import fields
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Literal

from ninja import Field
from pydantic import create_model

from scheduler.api.schemas.base import Given, Json
from scheduler.arguments import DESCRIPTION_LENGTH, GROUP_LENGTH
from scheduler.policy import Policy
from scheduler.policy.backoff import Backoff
from scheduler.policy.codec import kind_of
from scheduler.policy.executor_options import ExecutorOptions
from scheduler.policy.ratelimit import RateLimit
from scheduler.schedules.linked import NAME_LENGTH

ScheduleGiven = str | Json
Duration = float | str
KINDS: dict[Any, Any] = {
    timedelta: Duration,
    datetime: str,
    RateLimit: str,
    Backoff: Duration | list[Duration] | Json,
    ExecutorOptions: Json,
}
"""What JSON has for the types of options; the others it has itself."""
ABSENT: Any = None
"""The default of a field that may be left out; it is never read, since only fields that were sent count."""
SCHEDULE = 'A line such as `every 1h30m`, or the JSON form, such as `{"type": "every", "seconds": 5400}`.'


def _of_option(name: str) -> tuple[Any, Any]:
    """Return the field of a policy option."""
    kind, optional = kind_of(name)
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        kind = Literal[tuple(str(one) for one in kind)]
    given = KINDS.get(kind, kind)
    return (given | None if optional else given), Field(ABSENT)


_OPTIONS: dict[str, Any] = {one.name: _of_option(one.name) for one in fields(Policy)}


class Columns(Given):
    """The fields of a definition beside its policy. What is null is cleared, where that may be."""

    task: str = Field(ABSENT, max_length=NAME_LENGTH, description="The registered task that it runs.")
    schedule: ScheduleGiven = Field(ABSENT, description=SCHEDULE)
    kwargs: Json = Field(ABSENT, description="The keyword arguments of its runs.")
    enabled: bool = Field(ABSENT)
    description: str = Field(ABSENT, max_length=DESCRIPTION_LENGTH)
    group: str = Field(ABSENT, max_length=GROUP_LENGTH, description="Empty: none.")
    priority: int = Field(ABSENT, ge=-1000, le=1000)


class WholeColumns(Columns):
    """As above; the schedule must be given, and what is left out has its default."""

    schedule: ScheduleGiven = Field(description=SCHEDULE)


JobPatch: Any = create_model("JobPatch", __base__=Columns, **_OPTIONS)
"""Single fields of a job."""
JobPut: Any = create_model("JobPut", __base__=WholeColumns, **_OPTIONS)
"""A whole definition; `task` is the name of the job unless it is given."""


class ScheduleForm(Given):
    """Exactly one of the forms. The keys of the JSON form stand beside its `type`."""

    model_config = {"extra": "allow", "strict": True}

    interval_seconds: float = Field(ABSENT, ge=0, allow_inf_nan=False, description="0 turns the job off.")
    interval_minutes: float = Field(ABSENT, ge=0, allow_inf_nan=False, description="0 turns the job off.")
    text: str = Field(ABSENT, description="A line such as `daily at 03:00 @ Europe/Berlin`.")
    cron: str = Field(ABSENT, description="A cron expression.")
    timezone: str | None = Field(ABSENT, description="The time zone, with `cron`.")
    type: str = Field(ABSENT, description="The kind of schedule, in the JSON form.")
