"""Groups, as the API tells them."""

from ninja import Field, Schema

from scheduler.api.schemas.base import Json
from scheduler.api.schemas.job import PauseOut, pause_out
from scheduler.engine.views.at_work.groups import GroupAtWork
from scheduler.engine.views.pauses import Hold
from scheduler.models import Group


class GroupOut(Schema):
    """A group, and the pause that holds its jobs."""

    name: str = Field(description="Empty: everything.")
    paused: bool
    pause: PauseOut | None


class GroupListed(GroupOut):
    """A group in the list: what it may run, and what it does."""

    jobs: int = Field(description="How many jobs it has; those that the caller may reach.")
    limit: int | None = Field(description="How many runs it may have at once; null without a limit.")
    running: int = Field(description="How many runs it has.")
    waiting: int = Field(description="How many jobs and runs are due and wait for it: it is full or paused.")


class GroupsOut(Schema):
    """All groups."""

    items: list[GroupListed]


def group_out(name: str, row: Group | None) -> Json:
    """Return a group for `GroupOut`; `row` is that of its pause, where it is paused."""
    return {"name": name, "paused": row is not None, "pause": pause_out(Hold.of(row) if row else None)}


def group_listed(group: GroupAtWork) -> Json:
    """Return a group for `GroupListed`."""
    told = {"name": group.name, "paused": group.hold is not None, "pause": pause_out(group.hold)}
    return told | {"jobs": group.jobs, "limit": group.most, "running": group.taken, "waiting": group.waiting}
