"""What stands in the cells of the jobs list: a label that cards show, two lines at most, times in short."""

from datetime import datetime

from django.conf import settings
from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext, ngettext

from scheduler.admin.badges import labelled
from scheduler.admin.names import address_of
from scheduler.admin.times import instant, relative, zone_of
from scheduler.engine.views.datetimes import decimal
from scheduler.engine.views.job_view import JobView
from scheduler.models import Job


def region(job: Job, name: str, content: SafeString, *, label: object = "", busy: bool = False) -> SafeString:
    """Mark what the live refresh may replace, and the zone of what it says; `busy` asks for it more often, cards show
    the label."""
    mark, zone = mark_safe(" data-sched-busy") if busy else "", zone_of(job, settings.TIME_ZONE)
    shape = '<div class="sched-region" data-sched-live="{}-{}" data-zone="{}"{}>{}</div>'
    inside = format_html(shape, job.pk, name, zone, mark, content)
    return labelled(label, inside)


def line(content: object, title: object = "", css: str = "") -> SafeString:
    """Return a line of a cell, which is cut where the cell ends; the title is whole."""
    return format_html('<div title="{}" class="sched-line {}">{}</div>', title, css, content)


def short_time(at: datetime, now: datetime, zone: str, address: str) -> SafeString:
    """Return how far away an instant is; the whole of it is shown on hover and focus, and by cards."""
    return format_html(
        '<a class="sched-when" href="{}">{} <span class="sched-full">{}</span></a>',
        address,
        relative(at, now),
        instant(at, zone=zone),
    )


def next_word(view: JobView) -> SafeString:
    """Return what is to be said with the next start of a job, or in its place: the pause that ends, the run, users."""
    words, count = "", view.waiting.users
    if view.held_by and view.next_start:
        words = gettext("when the pause ends")
    elif view.after_run:
        words = gettext("after this run")
    elif view.waiting.has_users and count is not None:
        words = ngettext("%d user waits", "%d users wait", count) % count if count else gettext("no user waits")
    return line(words, words, "sched-quiet") if words else mark_safe("")


def link_to_runs(job: Job, site: str) -> SafeString:
    """Return the link to the run log of a job, which opens over the list."""
    return format_html(
        '<a class="sched-log-link" href="{}" data-sched-dialog>{}<span class="sched-sr"> {}</span></a>',
        address_of(site, "job_runs", job.pk),
        gettext("runs"),
        gettext("of {name}").format(name=job.shown_name),
    )


def success_rate(job: Job) -> SafeString:
    """Return the share of runs that succeeded without errors, of all there ever were."""
    ended = job.successes + job.failures + job.timeouts + job.losses
    if not ended:
        return mark_safe("")
    share = 100 * (job.successes - job.successes_with_errors) / ended
    percent = f"{share:.0f}" if share in (0, 100) else decimal(f"{min(max(share, 0.1), 99.9):.1f}")
    told = {"percent": f"{percent} %", "all": ended}
    words = gettext("{percent} of {all} succeeded").format(**told)
    return line(gettext("{percent} of {all}").format(**told), words, "sched-quiet sched-rate")
