"""Instants and durations as HTML: the server writes UTC with the zone named, the browser may say it in another zone."""

import re
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any
from zoneinfo import ZoneInfo

from django.utils.html import escape, format_html
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from scheduler.engine.views.datetimes import SAID, heard, lasted
from scheduler.models import Job
from scheduler.schedules import Schedule

DASH = "\N{EN DASH}"
NOTHING = format_html('<span class="sched-quiet">{}</span>', DASH)
LOGGED = re.compile(r"^(\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d)(\.\d{3}) UTC", re.MULTILINE)
"""How a line of a run's log begins."""


def instant(at: datetime | None, *, zone: str = "") -> SafeString:
    """Return an instant as `<time>`; `zone` is the time zone of the job, for the reader who asks for it."""
    if at is None:
        return NOTHING
    at = at.astimezone(UTC)
    return format_html(
        '<time class="sched-time" datetime="{}" data-zone="{}">{} UTC</time>',
        f"{at:%Y-%m-%dT%H:%M:%S}.{at.microsecond // 1000:03}Z",
        zone,
        f"{at:%Y-%m-%d %H:%M:%S}",
    )


def with_times(sentence: str, zone: ZoneInfo | None = None) -> SafeString:
    """Return a sentence in which each instant, of the project's zone or of `zone`, is a `<time>`, so that JavaScript
    can show it in another zone."""
    words = SAID.sub(partial(_as_time, zone), escape(sentence))
    return mark_safe(words)  # escaped first; what is put in is made of digits and letters


def in_zone(words: Any) -> Any:
    """Return a sentence for a message: plain text with an instant in it as `with_times` does, any other as it is."""
    timed = with_times(str(words))
    return timed if "<time" in timed and not hasattr(words, "__html__") else words


def log_lines(log: str) -> SafeString:
    """Return lines of a run's log in which the instant that each begins with is a `<time>`."""
    return mark_safe(LOGGED.sub(_logged, escape(log)))  # escaped first; what is put in is made of digits


def _logged(found: re.Match[str]) -> str:
    day, clock, fraction = found.groups()
    return format_html(
        '<time class="sched-time" datetime="{}T{}{}Z" data-fraction="{}">{}</time>',
        day, clock, fraction, fraction, found[0],
    )  # fmt: skip


def _as_time(zone: ZoneInfo | None, found: re.Match[str]) -> str:
    at = heard(found[1], found[2], zone) if _is_date(found[1]) else None
    if at is None:
        return found[0]
    return format_html('<time class="sched-time" datetime="{}">{}</time>', f"{at:%Y-%m-%dT%H:%M:%S}Z", found[0])


def _is_date(text: str) -> bool:
    try:
        return bool(datetime.fromisoformat(text))
    except ValueError:
        return False


def relative(at: datetime | None, now: datetime) -> SafeString:
    """Return how far away an instant is, such as “in 5 min”; the browser keeps it up to date."""
    if at is None:
        return mark_safe("")
    return format_html(
        '<span class="sched-relative" data-at="{}">{}</span>',
        f"{at.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}",
        distance(at - now),
    )


def distance(away: timedelta) -> str:
    """Return “in 5 min” or “5 min ago”."""
    seconds = round(away.total_seconds())
    size = lasted(timedelta(seconds=seconds), parts=1)
    if seconds == 0:
        return _("now")
    return _("in {time}").format(time=size) if seconds > 0 else _("{time} ago").format(time=size)


def zone_of(job: Job, project: str) -> str:
    """Return the IANA name of the zone a job lives in: its schedule's own, else the project's."""
    schedule = job.schedule
    return (schedule.timezone if isinstance(schedule, Schedule) else None) or project


def counted_words(counts: dict[str, int], labels: dict[str, Any]) -> str:
    """Return “38 succeeded, 2 failed”."""
    return ", ".join(f"{number} {labels.get(status, status)}" for status, number in counts.items())


def runs_words(number: int) -> str:
    """Return “1 run” or “40 runs”."""
    return ngettext("%d run", "%d runs", number) % number
