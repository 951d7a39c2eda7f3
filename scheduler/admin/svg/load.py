"""The load of the week to come: how many runs start in each hour."""

from collections.abc import Mapping
from datetime import datetime, timedelta

from django.utils.formats import date_format
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from scheduler.admin.svg.canvas import picture, rect, text

CELL, ROW, LEFT, TOP, DAYS = 30, 22, 64, 18, 7


def load_map(starts: Mapping[datetime, float], monday: datetime) -> SafeString:
    """Return a square for each hour of seven days from `monday` (midnight); `starts` maps an hour to its runs."""
    counts = [starts.get(monday + timedelta(hours=hour), 0.0) for hour in range(24 * DAYS)]
    quietest, busiest = min(counts), max(counts)
    shapes = [_hour(monday + timedelta(hours=hour), hour) for hour in range(24)]
    for day in range(DAYS):
        midnight = monday + timedelta(days=day)
        shapes.append(text(0, TOP + day * ROW + 15, date_format(midnight, "D j"), "sched-day", at=midnight))
        for hour in range(24):
            at, count = midnight + timedelta(hours=hour), counts[24 * day + hour]
            title = f"{at:%Y-%m-%d %H:%M} UTC: {count:.0f}"
            x, y = LEFT + hour * CELL, TOP + day * ROW
            shapes.append(rect(x, y, CELL - 2, ROW - 2, heat(count, quietest, busiest), title, at))
    label = _("Runs that start in each hour of the next seven days, at most {most}").format(most=round(busiest))
    return picture(LEFT + 24 * CELL, TOP + DAYS * ROW, label, shapes, "sched-load")


def _hour(at: datetime, column: int) -> SafeString:
    return text(LEFT + column * CELL + CELL / 2, 12, f"{at:%H}", anchor="middle", at=at)


def heat(count: float, quietest: float, busiest: float) -> str:
    """Return the tone of an hour, from the quietest to the busiest; a load that hardly varies is one of middle tone."""
    if count < 0.5:
        return "sched-heat-0"
    if busiest - quietest < busiest / 10:
        return "sched-heat-2"
    return f"sched-heat-{1 + round(3 * (count - quietest) / (busiest - quietest))}"
