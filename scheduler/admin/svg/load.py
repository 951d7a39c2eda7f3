"""The load of seven days: one square for each hour of the week, a row for each day, in the zone of the reader."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta

from django.utils.formats import date_format
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from scheduler.admin.svg.canvas import line, link, picture, rect, text

CELL, ROW, LEFT, TOP, DAYS = 30, 22, 64, 18, 7
HOUR = timedelta(hours=1)
FEWEST = 0.5
"""Fewer starts than that are none."""
EVEN = 1.1


def load_map(
    starts: Mapping[datetime, float], midnight: datetime, now: datetime, address: Callable[[datetime], str]
) -> SafeString:
    """Return a square for each hour of seven days from `midnight`, in its zone, each a link; `starts` maps an hour of
    its clock to what starts then.

    Hours that have passed are faint, those that clocks skip are left out, and a line marks `now`.
    """
    days = [midnight + timedelta(days=number) for number in range(DAYS)]
    hours = [at for day in days for hour in range(24) if _exists(at := day.replace(hour=hour))]
    counts = [starts.get(at, 0.0) for at in hours]
    quietest, busiest = min(filter(FEWEST.__le__, counts), default=0.0), max(counts)
    shapes = [text(LEFT + hour * CELL + CELL / 2, 12, f"{hour:02}", anchor="middle") for hour in range(24)]
    shapes += [text(0, TOP + row * ROW + 15, date_format(day, "D j")) for row, day in enumerate(days)]
    for at, count in zip(hours, counts, strict=True):
        tone, title = heat(count, quietest, busiest), f"{at:%Y-%m-%d %H:%M} {at.tzname()}: {count:.0f}"
        if (at + HOUR).astimezone(UTC) <= now:
            tone, title = f"{tone} sched-past", f"{title} ({_('past')})"
        x, y = LEFT + at.hour * CELL, TOP + (at.date() - midnight.date()).days * ROW
        url = address(at) if count and "past" not in tone else ""
        shapes.append(link(url, [rect(x, y, CELL - 2, ROW - 2, tone, title)]))
    clock = now.astimezone(midnight.tzinfo)
    mark = LEFT + (clock.hour + clock.minute / 60) * CELL
    shapes.append(line(mark, TOP - 2, mark, TOP + ROW, "sched-now"))
    label = _("Runs that start in each hour of the next seven days, at most {most}").format(most=round(busiest))
    return picture(LEFT + 24 * CELL, TOP + DAYS * ROW, label, shapes, "sched-load", role="group")


def _exists(wall: datetime) -> bool:
    """Whether the clock ever shows this."""
    return wall.astimezone(UTC).astimezone(wall.tzinfo).replace(fold=0) == wall


def is_even(quietest: float, busiest: float) -> bool:
    """Return whether the load of a week varies by less than a tenth, or by no start at all."""
    return round(quietest) == round(busiest) or busiest < quietest * EVEN


def heat(count: float, quietest: float, busiest: float) -> str:
    """Return the tone of an hour between the quietest and the busiest of the week; an even load is of middle tone."""
    if count < FEWEST:
        return "sched-heat-0"
    if is_even(quietest, busiest):
        return "sched-heat-2"
    return f"sched-heat-{1 + round(3 * (count - quietest) / (busiest - quietest))}"
