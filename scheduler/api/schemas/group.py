"""Groups, as the API tells them."""

from ninja import Field, Schema

from scheduler.api.schemas.base import Json
from scheduler.api.schemas.job import PauseOut, pause_out
from scheduler.engine.views.pauses import Hold
from scheduler.models import Group


class GroupOut(Schema):
    """A group, and the pause that holds its jobs."""

    name: str = Field(description="Empty: everything.")
    paused: bool
    pause: PauseOut | None


def group_out(name: str, row: Group | None) -> Json:
    """Return a group for `GroupOut`; `row` is that of its pause, where it is paused."""
    return {"name": name, "paused": row is not None, "pause": pause_out(Hold.of(row) if row else None)}
