"""The preview of a schedule as HTML."""

from dataclasses import replace
from datetime import datetime

from scheduler.admin.times import instant, relative, with_times
from scheduler.engine.views.preview import Preview


def shown_preview(found: Preview, now: datetime) -> Preview:
    """Return a preview whose slots are shown."""
    slots = [
        slot._replace(at=instant(slot.at, zone=found.timezone), away=relative(slot.at, now), note=with_times(slot.note))
        for slot in found.slots
    ]
    return replace(found, slots=slots)
