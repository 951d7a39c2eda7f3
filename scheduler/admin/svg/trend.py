"""How long runs take, day by day: the middle and the slow end of each day, and the days with failures."""

from collections.abc import Callable, Mapping
from datetime import date, timedelta

from django.utils.formats import date_format
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from scheduler.admin.svg.calendar import title_of
from scheduler.admin.svg.canvas import line, link, picture, rect, text
from scheduler.engine.views.datetimes import lasted
from scheduler.engine.views.days import Day

WIDTH, HEIGHT, TOP, BOTTOM, MARK = 600, 130, 14, 104, 4
LABELS = 5


def trend(days: Mapping[date, Day], today: date, count: int, address: Callable[[date], str]) -> SafeString:
    """Return `count` days up to today: a bar from p50 to p95 of each, a link to its runs; failures are marked below."""
    shown = [today - timedelta(days=count - 1 - number) for number in range(count)]
    drawn = {on: days[on] for on in shown if on in days}
    spans = {on: (day.percentile(50), day.percentile(95)) for on, day in drawn.items()}
    longest = max((slow for _middle, slow in spans.values() if slow is not None), default=timedelta(0))
    step, scale = WIDTH / count, (BOTTOM - TOP) / (longest.total_seconds() or 1)
    shapes = [line(0, BOTTOM, WIDTH, BOTTOM), line(0, TOP, WIDTH, TOP), text(0, 10, lasted(longest))]
    shapes += [
        text(number * step, HEIGHT - 4, date_format(shown[number], "MONTH_DAY_FORMAT"))
        for number in range(0, count, count // LABELS)
    ]
    for on, day in drawn.items():
        bar = _day((on - shown[0]).days * step, step, day, spans[on], scale)
        shapes.append(link(address(on), bar, _title(on, day, spans[on])))
    failed = sum(day.failed for day in drawn.values())
    label = _(
        "Durations by day, days: {days}. On the slowest, 95 of 100 runs took {longest} or less. Failed: {failed}."
    )
    words = label.format(days=count, longest=lasted(longest) or "0", failed=failed)
    return picture(WIDTH, HEIGHT, words, shapes, "sched-wide", role="group")


Span = tuple[timedelta | None, timedelta | None]


def _day(x: float, step: float, day: Day, span: Span, scale: float) -> list[SafeString]:
    gap, (middle, slow) = min(2.0, step / 4), span
    shapes = [rect(x, TOP, step, BOTTOM + MARK + 2 - TOP, "sched-hit")]
    if middle is not None and slow is not None:
        high, low = BOTTOM - slow.total_seconds() * scale, BOTTOM - middle.total_seconds() * scale
        shapes.append(rect(x + gap, high, step - 2 * gap, max(1.5, low - high), "sched-heat-2"))
        shapes.append(rect(x + gap, min(low, BOTTOM - 2), step - 2 * gap, 2, "sched-p50"))
    if day.failed:
        shapes.append(rect(x + gap, BOTTOM + 2, step - 2 * gap, MARK, "sched-bad"))
    return shapes


def _title(on: date, day: Day, span: Span) -> str:
    middle, slow = span
    return f"{title_of(on, day)}" + (f" · p50 {lasted(middle)}, p95 {lasted(slow)}" if middle is not None else "")
