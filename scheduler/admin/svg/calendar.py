"""The calendar of a job: one square for each day of the last half year, a column for each week."""

from collections.abc import Callable, Mapping
from datetime import date, timedelta

from django.utils.formats import date_format
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from scheduler.admin.svg.canvas import link, picture, rect, text
from scheduler.admin.times import runs_words
from scheduler.engine.views.days import Day

WEEKS, CELL, LEFT, TOP = 26, 14, 30, 14
DAYS, SIDE = 7, CELL - 2
NO_DAY = Day()
AddressOf = Callable[[date], str]


def first_day(today: date) -> date:
    """Return the Monday with which the calendar of a day begins."""
    return today - timedelta(days=today.weekday() + DAYS * (WEEKS - 1))


def calendar_map(days: Mapping[date, Day], today: date, address: AddressOf) -> SafeString:
    """Return the squares, each a link to the runs of its day. The part of a square that is red is that of failures."""
    start = first_day(today)
    busiest = max((day.runs for day in days.values()), default=0)
    shapes = [text(0, TOP + row * CELL + 10, date_format(start + timedelta(days=row), "D")) for row in (0, 2, 4)]
    for number in range((today - start).days + 1):
        on = start + timedelta(days=number)
        column, row = divmod(number, DAYS)
        if row == 0 and on.day <= DAYS:
            shapes.append(text(LEFT + column * CELL, 10, date_format(on, "M")))
        x, y = LEFT + column * CELL, TOP + row * CELL
        day = days.get(on, NO_DAY)
        shapes.append(link(address(on) if day.runs else "", _square(x, y, day, busiest), title_of(on, day)))
    total, bad = sum(day.runs for day in days.values()), sum(day.failed for day in days.values())
    label = _("Runs by day over half a year: {runs}, {failed} failed").format(runs=runs_words(total), failed=bad)
    return picture(LEFT + WEEKS * CELL, TOP + DAYS * CELL, label, shapes, "sched-calendar", role="group")


def title_of(on: date, day: Day) -> str:
    """Return a day in words."""
    words = f"{date_format(on, 'DATE_FORMAT')}: {runs_words(day.runs)}"
    return words + (", " + _("{count} failed").format(count=day.failed) if day.failed else "")


def _square(x: int, y: int, day: Day, busiest: int) -> list[SafeString]:
    if not day.runs:
        return [rect(x, y, SIDE, SIDE, "sched-heat-0")]
    bad = max(2, round(SIDE * day.failed / day.runs)) if day.failed else 0
    shapes = [rect(x, y, SIDE, SIDE, f"sched-heat-{min(4, 1 + 3 * day.runs // max(1, busiest))}")] if bad < SIDE else []
    return [*shapes, rect(x, y + SIDE - bad, SIDE, bad, "sched-bad")] if bad else shapes
