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
    busiest = max(starts.values(), default=0.0)
    shapes = [text(LEFT + hour * CELL + CELL / 2, 12, f"{hour:02}", anchor="middle") for hour in range(24)]
    for day in range(DAYS):
        midnight = monday + timedelta(days=day)
        shapes.append(text(0, TOP + day * ROW + 15, date_format(midnight, "D j")))
        for hour in range(24):
            at = midnight + timedelta(hours=hour)
            count = starts.get(at, 0.0)
            title = f"{at:%Y-%m-%d %H}:00: {count:.0f}"
            shapes.append(rect(LEFT + hour * CELL, TOP + day * ROW, CELL - 2, ROW - 2, _heat(count, busiest), title))
    label = _("Runs that start in each hour of the next seven days, at most {most}").format(most=round(busiest))
    return picture(LEFT + 24 * CELL, TOP + DAYS * ROW, label, shapes, "sched-load")


def _heat(count: float, busiest: float) -> str:
    return "sched-heat-0" if count < 0.5 else f"sched-heat-{max(1, round(4 * count / max(1.0, busiest)))}"
