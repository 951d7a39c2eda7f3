"""The durations of a job's last runs as bars, the oldest first."""

from collections.abc import Callable, Sequence
from datetime import UTC, timedelta

from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from scheduler.admin.badges import run_tone, run_word
from scheduler.admin.svg.canvas import line, link, picture, rect, text
from scheduler.admin.times import runs_words
from scheduler.engine.views.datetimes import lasted
from scheduler.models import RunLog

WIDTH, HEIGHT, BOTTOM = 600, 120, 104


def duration_bars(newest_first: Sequence[RunLog], address: Callable[[RunLog], str], slots: int = 60) -> SafeString:
    """Return a bar for each run that ended, a link to it, with slot, status and duration as its title."""
    timed = [run for run in newest_first if run.duration is not None][:slots][::-1]
    longest = max((run.duration for run in timed), default=timedelta(0))
    label = _("Durations of the last {runs}, the longest {longest}").format(
        runs=runs_words(len(timed)), longest=lasted(longest) or "0"
    )
    step = WIDTH / slots
    scale = (BOTTOM - 12) / (longest.total_seconds() or 1)
    shapes = [line(0, BOTTOM, WIDTH, BOTTOM), line(0, 12, WIDTH, 12)]
    for place, run in enumerate(timed, slots - len(timed)):
        height = max(1.5, run.duration.total_seconds() * scale)
        css, x = f"sched-{run_tone(run)}", place * step + 1
        bar = rect(x, BOTTOM - height, step - 2, height, css, _title(run), run.scheduled_for)
        shapes.append(link(address(run), [bar]))
    shapes.append(text(0, 9, lasted(longest)))
    shapes.append(text(0, HEIGHT - 3, _("older")))
    shapes.append(text(WIDTH, HEIGHT - 3, _("newest"), anchor="end"))
    return picture(WIDTH, HEIGHT, label, shapes, "sched-wide", role="group")


def _title(run: RunLog) -> str:
    slot = run.scheduled_for.astimezone(UTC)
    return f"{slot:%Y-%m-%d %H:%M:%S} UTC · {run_word(run.status, run.errors)} · {lasted(run.duration)}"
