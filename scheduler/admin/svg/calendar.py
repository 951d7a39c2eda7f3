"""The calendar of a job: one square for each day of the last half year, a column for each week."""

from collections.abc import Mapping
from datetime import date, timedelta

from django.utils.formats import date_format
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from scheduler.admin.instants import runs_words
from scheduler.admin.svg.canvas import picture, rect, text

WEEKS, CELL, LEFT, TOP = 26, 14, 30, 14
DAYS = 7


def calendar_map(days: Mapping[date, tuple[int, int]], today: date) -> SafeString:
    """Return the squares; `days` maps a day to its number of runs and of failures among them."""
    start = today - timedelta(days=today.weekday() + DAYS * (WEEKS - 1))
    busiest = max((runs for runs, _failed in days.values()), default=0)
    shapes = [text(0, TOP + row * CELL + 10, date_format(start + timedelta(days=row), "D")) for row in (0, 2, 4)]
    for number in range(WEEKS * DAYS):
        day = start + timedelta(days=number)
        if day > today:
            break
        column, row = divmod(number, DAYS)
        if row == 0 and day.day <= DAYS:
            shapes.append(text(LEFT + column * CELL, 10, date_format(day, "M")))
        runs, failed = days.get(day, (0, 0))
        shapes.append(
            rect(LEFT + column * CELL, TOP + row * CELL, CELL - 2, CELL - 2, _tone(runs, failed, busiest),
                 _title(day, runs, failed))
        )  # fmt: skip
    total, bad = sum(runs for runs, _f in days.values()), sum(failed for _r, failed in days.values())
    label = _("Runs by day over half a year: {runs}, {failed} failed").format(runs=runs_words(total), failed=bad)
    return picture(LEFT + WEEKS * CELL, TOP + DAYS * CELL, label, shapes, "sched-calendar")


def _title(day: date, runs: int, failed: int) -> str:
    words = f"{date_format(day, 'DATE_FORMAT')}: {runs_words(runs)}"
    return words + (", " + _("{count} failed").format(count=failed) if failed else "")


def _tone(runs: int, failed: int, busiest: int) -> str:
    if not runs:
        return "sched-heat-0"
    if failed:
        return "sched-bad"
    return f"sched-heat-{min(4, 1 + 3 * runs // max(1, busiest))}"
