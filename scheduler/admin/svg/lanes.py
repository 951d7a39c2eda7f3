"""A day in lanes, one for each job: what ran in the last 24 hours, or what will start in the next."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from scheduler.admin.svg.canvas import hatch, join, line, link, picture, rect, text

LEFT, WIDTH, LANE, TOP = 170, 770, 20, 22
NAME_LENGTH = 24
STEP, EDGE = 3, 14


@dataclass(frozen=True, slots=True)
class Band:
    """Something that takes time on a lane; `css` is its look, `title` says what it is, and of which instant."""

    start: datetime
    end: datetime
    css: str
    title: str
    at: datetime | None = None
    url: str = ""


@dataclass(slots=True)
class Lane:
    """One job."""

    name: str
    url: str
    bands: list[Band] = field(default_factory=list)


def lanes(rows: Sequence[Lane], start: datetime, now: datetime, label: str, name: str) -> SafeString:
    """Return 24 hours from `start`, with a line at `now`, beside a picture of the names, which stays in sight while the
    hours are scrolled; `name` is the id of the hatching, one for each picture on a page."""
    height = TOP + len(rows) * LANE
    names, shapes = [], [hatch(name), *_hours(start, height)]
    for number, lane in enumerate(rows):
        y = TOP + number * LANE
        shown = lane.name if len(lane.name) <= NAME_LENGTH else lane.name[: NAME_LENGTH - 1] + "…"
        names.append(format_html('<a href="{}"><title>{}</title>{}</a>', lane.url, lane.name, text(0, y + 14, shown)))
        shapes.append(join(_band(band, start, y) for band in lane.bands))
    mark = 1 + (WIDTH - 2) * ((now - start) / timedelta(days=1))
    shapes.append(line(mark, TOP - 6, mark, height, "sched-now"))
    return format_html(
        '<div class="sched-lanes">{}{}</div>',
        picture(LEFT, height, _("Jobs"), names, "sched-lane-names", role="group"),
        picture(WIDTH, height, label, shapes, "sched-lane-bands", role="group"),
    )


def _hours(start: datetime, height: int) -> list[SafeString]:
    """Lines at full hours, every third."""
    shapes = []
    first = start.astimezone(UTC).replace(minute=0, second=0, microsecond=0)
    first += timedelta(hours=(-first.hour) % STEP or (STEP if first < start else 0))
    for number in range(24 // STEP):
        at = first + timedelta(hours=number * STEP)
        x = WIDTH * ((at - start) / timedelta(days=1))
        anchor = "start" if x < EDGE else "end" if x > WIDTH - EDGE else "middle"
        shapes += [line(x, TOP - 4, x, height), text(x, 12, f"{at:%H:%M}", anchor=anchor, at=at)]
    return shapes


def _band(band: Band, start: datetime, y: int) -> SafeString:
    day = timedelta(days=1)
    first = min(max((band.start - start) / day, 0.0), 1.0)
    last = min(max((band.end - start) / day, first), 1.0)
    x, width = WIDTH * first, max(2.0, WIDTH * (last - first))
    bar = rect(min(x, WIDTH - width), y + 3, width, LANE - 6, band.css, band.title, band.at)
    return link(band.url, [bar])
