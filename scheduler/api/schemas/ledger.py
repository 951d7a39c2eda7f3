"""The past and the future of a job, as the API tells them."""

from typing import Any

from ninja import Field, Schema

from scheduler.api.schemas.base import Given, Instant, Json, PageOut
from scheduler.api.schemas.definition import SCHEDULE, ScheduleGiven
from scheduler.engine.views.history import Happened
from scheduler.engine.views.pages import MOST_ON_PAGE
from scheduler.engine.views.preview import Preview


class SlotOut(Schema):
    """A slot to come."""

    at: Instant
    start_at: Instant = Field(description="When it is to start: later than the slot where something puts it off.")
    note: str = Field(description="What puts its start off, and what a change of the clock does to it.")


class UpcomingOut(Schema):
    """The slots that a job will have."""

    planned: bool = Field(description="False: it would have them if nothing stopped it.")
    next_start_at: Instant | None = Field(description="As of the job: also of an attempt that is promised.")
    timezone: str
    items: list[SlotOut]


class PreviewGiven(Given):
    """A schedule that is not stored yet."""

    schedule: ScheduleGiven = Field(description=SCHEDULE)
    count: int = Field(5, ge=1, le=MOST_ON_PAGE, description="How many slots.")


class PreviewOut(Schema):
    """What a schedule means."""

    text: str = Field(description="Its line.")
    words: str
    data: Json = Field(description="Its JSON form.")
    timezone: str
    slots: list[SlotOut]
    notes: list[str] = Field(description="What a person should know before it is stored.")


class StatsOut(Schema):
    """How the runs of a job went. Durations and delays are seconds, null where there is nothing to measure."""

    job: str
    since: str | None
    counts: dict[str, int] = Field(description="Rows of each status that occurs.")
    with_errors: int
    skipped_slots: int
    missed_slots: int
    coalesced_slots: int
    success_rate: float | None
    duration_p50: float | None
    duration_p95: float | None
    duration_max: float | None
    start_delay_p50: float | None
    start_delay_p95: float | None
    sampled: int = Field(description="How many of the newest runs were measured.")


class ChangeOut(Schema):
    """A field that an edit changed, with its values in words."""

    field: str
    old: str
    new: str


class EventOut(Schema):
    """What happened to a job besides runs."""

    id: int
    at: Instant
    kind: str
    of: str = Field(description="Empty for the job itself, else its group, or everything.")
    actor: str = Field(description="A user, `code` for a deploy, `scheduler`; empty where it is not known.")
    details: str = Field(description="Until when, and why.")
    changes: list[ChangeOut]


class EventPage(PageOut):
    """Some events."""

    items: list[EventOut]


class WhyOut(Schema):
    """What became, or will become, of a slot."""

    job: str
    verdict: str = Field(description="One word for programs.")
    sentence: str
    run: int | None
    at: str | None
    slot: str | None
    nearest_before: str | None
    nearest_after: str | None
    details: Any = None


def slots_out(preview: Preview) -> list[Json]:
    """Return the slots of a preview."""
    return [{"at": slot.at, "start_at": slot.start or slot.at, "note": slot.note} for slot in preview.slots]


def event_out(pk: int, actor: str, happened: Happened, *, details: bool) -> Json:
    """Return an event for `EventOut`."""
    return {
        "id": pk,
        "at": happened.at,
        "kind": happened.kind,
        "of": happened.of,
        "actor": actor,
        "details": happened.more if details else "",
        "changes": [{"field": one.field, "old": one.old, "new": one.new} for one in happened.changes],
    }
