"""How the scheduler stands, as the API tells it."""

from typing import Literal

from ninja import Field, Schema

from scheduler.api.schemas.base import Json


class ProblemFound(Schema):
    """Something that is wrong with the scheduler."""

    code: str
    severity: Literal["degraded", "warning"]
    subject: str = Field(description="What it is about: a job, an instance, a service or a module.")
    text: str


class StatusOut(Schema):
    """How the scheduler stands. The figures are those of `SchedulerStatus`."""

    status: Literal["ok", "degraded", "disabled", "unavailable"]
    ok: bool = Field(description="Whether a monitor should be content.")
    running: bool = Field(description="Whether the process that answers runs a scheduler.")
    problems: list[ProblemFound]
    here: Json = Field(description="The process that answers.")
    instances: list[Json] = Field(description="The processes that run the scheduler.")
    jobs: Json = Field(description="How many jobs there are of each kind.")
