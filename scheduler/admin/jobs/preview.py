"""The preview of a schedule as HTML."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime

from django.utils.translation import gettext as _

from scheduler.admin.times import instant, relative, with_times
from scheduler.engine.views.preview import Preview, Slot


def shown_preview(found: Preview, now: datetime) -> Preview:
    """Return a preview whose slots are shown."""
    return replace(found, slots=list(_shown(found, now)))


def _shown(found: Preview, now: datetime) -> Iterator[Slot]:
    """Yield the slots; what puts off several of them is said of the first."""
    before = ""
    for slot in found.slots:
        note = _("waits for the same start") if slot.start and slot.note == before else with_times(slot.note)
        before = slot.note
        yield slot._replace(at=instant(slot.at, zone=found.timezone), away=relative(slot.at, now), note=note)
