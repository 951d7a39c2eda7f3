"""What users do, as the API tells it."""

from ninja import Field, Schema

from scheduler.api.schemas.base import Given, Instant
from scheduler.api.schemas.definition import ABSENT

Id = str | int


class ActivityGiven(Given):
    """Who did something."""

    user_id: Id
    device_id: Id | None = Field(ABSENT)
    agent_id: Id | None = Field(ABSENT)


class ActivityNoted(Schema):
    """An activity that was told of."""

    task: str
    accepted: bool = Field(
        description="False: it is kept, and its run comes later, since one has just run or the user is blocked."
    )


class QueueOut(Schema):
    """The users of a job."""

    task: str
    waiting_users: int | None = Field(description="Users who wait for a run; null: the store does not answer.")
    interval_seconds: float
    max_retries: int


class ActivitiesOut(Schema):
    """The jobs whose runs follow what users do."""

    max_concurrent: int = Field(description="Runs for users that go on at once, over all jobs.")
    queue_depths: dict[str, int | None] = Field(description="`waiting_users` of each job, by its name.")
    items: list[QueueOut]


class BlockedUser(Schema):
    """A user whose runs have failed too often in a row."""

    user_key: str
    failures: int
    until: Instant | None = Field(description="When the failures stop counting.")
    last_executed_at: Instant | None


class BlockedOut(Schema):
    """The blocked users of a job, at most 200."""

    items: list[BlockedUser]
