"""How long runs take: a histogram with logarithmic buckets, and where the middle and the slow end lie."""

from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from math import floor, log10

from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from scheduler.admin.svg.canvas import line, picture, rect, text
from scheduler.admin.times import runs_words
from scheduler.engine.views.datetimes import lasted
from scheduler.engine.views.stats import percentile

WIDTH, HEIGHT, BOTTOM, TOP = 600, 130, 112, 16
BOUNDS = (1, 2, 5)
"""Where the buckets of a decade begin: 10 ms, 20 ms, 50 ms, 100 ms."""
FASTEST = 0.00001
ROUNDING = 1e-9
LABELS = 6


def histogram(durations: Sequence[timedelta]) -> SafeString:
    """Return the histogram of these durations; empty text when there are none."""
    ascending = sorted(durations)
    if not ascending:
        return SafeString()
    p50, p95 = percentile(ascending, 50), percentile(ascending, 95)
    counts = Counter(_bucket(length) for length in ascending)
    first, last = min(counts) - 1, max(counts) + 1
    step = WIDTH / (last - first + 1)
    scale = (BOTTOM - TOP) / max(counts.values())
    shapes = [line(0, BOTTOM, WIDTH, BOTTOM)]
    for number in range(first, last + 1):
        count, x = counts[number], (number - first) * step
        span = f"{lasted(_start(number))} - {lasted(_start(number + 1))}"
        if count:
            shapes.append(
                rect(x + 1, BOTTOM - count * scale, step - 2, count * scale, "sched-calm", f"{span}: {count}")
            )
        if (number - first) % -(-(last - first + 1) // LABELS) == 0:
            shapes.append(text(x, HEIGHT - 4, lasted(_start(number))))
    for mark, name in ((p50, "p50"), (p95, "p95")):
        x = _place(mark or timedelta(0), first) * step
        shapes += [
            line(x, TOP - 4, x, BOTTOM, "sched-mark"),
            text(x - 2, 9, name, anchor="end") if name == "p50" else text(x + 2, 9, name),
        ]
    label = _("Distribution of {runs}: half take {p50} or less, 95 of 100 take {p95} or less").format(
        runs=runs_words(len(ascending)), p50=lasted(p50), p95=lasted(p95)
    )
    return picture(WIDTH, HEIGHT, label, shapes, "sched-wide")


def _place(length: timedelta, first: int) -> float:
    """Where a length lies on the axis, in buckets."""
    bucket = _bucket(length)
    start, end = _start(bucket), _start(bucket + 1)
    return bucket - first + log10(max(length / start, 1)) / log10(end / start)


def _bucket(length: timedelta) -> int:
    seconds = max(length.total_seconds(), FASTEST)
    decade = floor(log10(seconds) + ROUNDING)
    part = sum(seconds >= bound * 10.0**decade * (1 - ROUNDING) for bound in BOUNDS) - 1
    return decade * len(BOUNDS) + part


def _start(bucket: int) -> timedelta:
    decade, part = divmod(bucket, len(BOUNDS))
    return timedelta(seconds=BOUNDS[part] * 10.0**decade)
