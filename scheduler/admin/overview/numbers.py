"""Numbers first: what runs, what is due, and what went wrong in 24 hours, each with a link to the rows behind it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from django.contrib.admin import AdminSite
from django.http import HttpRequest
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from scheduler.admin.allowed import every_run_for, jobs_for, may_see_list
from scheduler.admin.banner import Notice
from scheduler.admin.names import address_of
from scheduler.admin.page_context import newest_run, now_of, once_in
from scheduler.engine.views.lately import Lately, count_lately
from scheduler.models import Job, RunLog


@dataclass(frozen=True, slots=True)
class Number:
    """A count and what it counts; `tone` is quiet where it needs no person."""

    name: str
    count: int
    words: str
    address: str
    tone: str = "quiet"
    whole: bool = True
    """Whether all of the 24 hours were counted; else there may be more."""


def numbers_of(site: AdminSite, request: HttpRequest) -> list[Number]:
    """Return the numbers that the person may see, in a constant number of queries, however large the ledger is."""
    if not may_see_list(site, request, Job):
        return []
    found = lately_of(site, request)
    due = f"{address_of(site.name, 'job_changelist')}?state=due"
    numbers = [Number("due", found.due, _("due in the next hour"), due)]
    sees_runs = may_see_list(site, request, RunLog) and every_run_for(site, request) is not None
    return [*_of_runs(site, found, numbers)] if sees_runs else numbers


def lately_of(site: AdminSite, request: HttpRequest) -> Lately:
    """Return what is due, and what went wrong lately, of what the person may see, asked for once in a request."""
    runs = every_run_for(site, request)
    among = RunLog.objects.none() if runs is None else runs
    return once_in(
        request,
        "scheduler_lately",
        lambda: count_lately(jobs_for(site, request), among, newest_run(request), now_of(request)),
    )


def _of_runs(site: AdminSite, found: Lately, due: list[Number]) -> Iterator[Number]:
    page = f"{address_of(site.name, 'runlog_changelist')}?outcome="
    yield Number("running", found.running, _("running"), f"{page}running", "busy" if found.running else "quiet")
    yield from due
    for name, count, words, tone in (
        ("failed", found.failed, _("failed in 24 h"), "bad"),
        ("missed", found.missed, _("missed in 24 h"), "warn"),
        ("late", found.late, _("late in 24 h"), "warn"),
    ):
        yield Number(name, count, words, f"{page}{name}&period=day", tone if count else "quiet", found.whole)


def nights(numbers: Sequence[Number]) -> list[Notice]:
    """Return what the banner says of slots that were missed or late: nothing else on the page may show a night."""
    counts = {number.name: number.count for number in numbers}
    missed, late = counts.get("missed", 0), counts.get("late", 0)
    found = []
    if missed:
        text = ngettext(
            "%d slot was missed in the last 24 hours.", "%d slots were missed in the last 24 hours.", missed
        )
        found.append(Notice("warn", "∅", text % missed, "state=missed"))
    if late:
        text = ngettext("%d run started late in the last 24 hours.", "%d runs started late in the last 24 hours.", late)
        found.append(Notice("warn", "⚠", text % late, "state=late"))
    return found
