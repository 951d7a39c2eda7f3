"""The sparkline of a job: its last 40 runs as bars, the oldest first."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from math import log10

from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext as _

from scheduler.admin.badges import run_tone
from scheduler.admin.svg.canvas import picture
from scheduler.admin.times import counted_words, runs_words
from scheduler.models import RunLog, Status

BARS, STEP, HEIGHT = 40, 4, 20
SHORTEST, LONGEST = 0.001, 3600.0


def sparkline(newest_first: Sequence[RunLog]) -> SafeString:
    """Return the bars: the height is the duration on a logarithmic scale, the tone is the outcome.

    One path for each tone keeps a page of a hundred jobs small.
    """
    runs = list(newest_first[:BARS])[::-1]
    offset = BARS - len(runs)
    paths: dict[str, list[str]] = defaultdict(list)
    for place, run in enumerate(runs, offset):
        paths[run_tone(run)].append(f"M{place * STEP + 1.5} {HEIGHT}V{_top(run)}")
    shapes = [mark_safe(f'<path class="sched-bar sched-{tone}" d="{"".join(bars)}"/>') for tone, bars in paths.items()]
    return picture(BARS * STEP, HEIGHT, label(runs), shapes, "sched-sparkline")


def label(runs: Sequence[RunLog]) -> str:
    """Return the picture in words."""
    if not runs:
        return _("No runs yet")
    words = counted_words(Counter(run.status for run in runs), dict(Status.choices))
    return _("Last {runs}: {words}").format(runs=runs_words(len(runs)), words=words)


def _top(run: RunLog) -> float:
    if run.duration is None:
        return HEIGHT - 3
    seconds = min(max(run.duration.total_seconds(), SHORTEST), LONGEST)
    share = (log10(seconds) - log10(SHORTEST)) / (log10(LONGEST) - log10(SHORTEST))
    least = 10 if run_tone(run) in ("bad", "warn") else 4
    return round(HEIGHT - max(least, share * HEIGHT), 1)
