"""Tasks that were enqueued, by function: a list, and what the page of one function tells in place of a plan."""

from datetime import datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from scheduler.admin.allowed import jobs_for, may_read_runs, narrowed_jobs
from scheduler.admin.banner import notices
from scheduler.admin.names import address_of
from scheduler.admin.page_context import now_of, page_context, paused_of
from scheduler.admin.times import DASH, relative
from scheduler.engine.views.enqueued import Enqueued, enqueued_of
from scheduler.engine.views.pauses import holds_of
from scheduler.models import Job, Status
from scheduler.models.carriers import CARRIERS

if TYPE_CHECKING:
    from scheduler.admin.jobs.actions import JobActionsMixin as _ModelAdmin
else:
    _ModelAdmin = object

MOST = 500
"""Functions on the list."""


class EnqueuedMixin(_ModelAdmin):
    """Tasks that were enqueued, folded by function and queue."""

    def enqueued_view(self, request: HttpRequest) -> HttpResponse:
        """The functions with the numbers of their tasks, each number a link to the run log."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        now, site = now_of(request), self.admin_site
        jobs = list(jobs_for(site, request).filter(CARRIERS).defer("state", "kwargs").order_by("name")[: MOST + 1])
        paused, links = paused_of(request), may_read_runs(site, request)
        found = enqueued_of(jobs[:MOST], now)
        rows = [
            {
                "one": one,
                "page": address_of(site.name, "job_page", one.job.pk),
                "paused": bool(holds_of(one.job, paused)),
                "numbers": numbers_of(one, site.name, links=links),
                "since": relative(one.due_since, now) if one.due_since else DASH,
            }
            for one in found
        ]
        context = page_context(
            self, request, _("Enqueued tasks"),
            rows=rows, most=MOST if len(jobs) > MOST else None,
            notices=notices(request, narrowed_jobs(site, request)), busy=any(one.running for one in found),
        )  # fmt: skip
        return TemplateResponse(request, "admin/scheduler/job/enqueued.html", context)


def facts_of_tasks(job: Job, now: datetime, site: str, *, links: bool) -> list[tuple[Any, Any, Any]]:
    """Return what the page of a function tells, in place of the facts of a job."""
    (one,) = enqueued_of([job], now)
    words = (_("Waiting"), _("Running"), _("Succeeded"), _("Failed, timed out, lost"), _("Cancelled"))
    since = relative(one.due_since, now) if one.due_since else ""
    return [
        (_("Function"), one.function, ""),
        (_("Queue"), one.queue or DASH, ""),
        *((word, number, "") for word, number in zip(words, numbers_of(one, site, links=links), strict=True)),
        *([(_("Due for longest"), since, "")] if since else []),
    ]


def numbers_of(one: Enqueued, site: str, *, links: bool) -> list[SafeString | int]:
    """Return how many tasks wait, run, succeeded, failed and were cancelled, each a link where there are any."""
    counts = (
        (one.waiting, Status.PENDING), (one.running, Status.RUNNING), (one.succeeded, Status.SUCCEEDED),
        (one.failed, Status.FAILED), (one.cancelled, Status.CANCELLED),
    )  # fmt: skip
    address = address_of(site, "runlog_changelist")
    return [
        format_html('<a href="{}?{}">{}</a>', address, urlencode({"job": one.job.pk, "status__exact": status}), count)
        if links and count
        else count
        for count, status in counts
    ]
