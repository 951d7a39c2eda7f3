"""Preview: what a schedule means before it is stored."""

from django.http import HttpRequest

from scheduler.api.rights import Right
from scheduler.api.router import operation
from scheduler.api.schemas.base import Json
from scheduler.api.schemas.ledger import PreviewGiven, PreviewOut, slots_out
from scheduler.engine.base import Engine
from scheduler.engine.control import checked_schedule
from scheduler.engine.db.shared_time import shared_now
from scheduler.engine.views.preview import preview


@operation("POST", "/preview", right=Right.VIEW, answers={200: PreviewOut})
def preview_schedule(request: HttpRequest, body: PreviewGiven) -> Json:
    """Tell what a schedule means: in words, and in its next slots."""
    schedule = checked_schedule(body.schedule)
    found = preview(schedule, shared_now(Engine().using), body.count)
    told = {name: getattr(found, name) for name in ("text", "words", "timezone", "notes")}
    return told | {"data": schedule.to_dict(), "slots": slots_out(found)}
