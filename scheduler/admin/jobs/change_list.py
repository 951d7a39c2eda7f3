"""The jobs list: columns, order, and what a page of it needs to know, in a constant number of queries."""

from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.contrib import admin
from django.db import OperationalError, ProgrammingError
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.utils.functional import cached_property
from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from scheduler.admin import badges
from scheduler.admin.allowed import may_read_runs, narrowed_jobs, recent_runs_for
from scheduler.admin.banner import notices
from scheduler.admin.filters import EnqueuedFilter, StateFilter, TaskFilter
from scheduler.admin.names import address_of
from scheduler.admin.overview.numbers import nights, numbers_of
from scheduler.admin.page_context import READS, may_add_job, now_of, page_context, paused_of, urgency_of, with_attention
from scheduler.admin.refresh import not_modified, stamp_of_jobs, with_stamp
from scheduler.admin.request_values import CarefulListMixin
from scheduler.admin.svg import sparkline
from scheduler.admin.svg.sparkline import BARS
from scheduler.admin.times import NOTHING, duration, instant, relative, with_times, zone_of
from scheduler.admin.viewable import viewable_jobs
from scheduler.engine.base import Engine
from scheduler.engine.db.migrated import awaits_migration
from scheduler.engine.db.transactions import outside_transactions
from scheduler.engine.views.job_view import JobView, views_of
from scheduler.engine.views.overdue import one_look
from scheduler.models import Job, RunLog
from scheduler.models.fields import Unreadable
from scheduler.schedules import Schedule

if TYPE_CHECKING:
    _ModelAdmin = admin.ModelAdmin[Job]
else:
    _ModelAdmin = object


def _lists_jobs(request: HttpRequest) -> bool:
    """Whether the request is for a list, as far as it says so."""
    asked = request.resolver_match.url_name if request.resolver_match else None
    return asked is None or asked.endswith("_changelist")


class JobListMixin(CarefulListMixin, _ModelAdmin):
    """What is on the list, and how it is found. Nothing is written while listing."""

    list_display = ("job_name", "job_status", "job_schedule", "last_result", "history", "next_start", "buttons")
    list_display_links = None
    list_filter = (StateFilter, ("task", TaskFilter), ("group", TaskFilter), EnqueuedFilter)
    search_fields = ("name", "task", "description")
    search_help_text = _("Search by name, task or description")
    show_full_result_count = False
    list_per_page = 50
    list_max_show_all = 0
    change_list_template = "admin/scheduler/job/change_list.html"

    if TYPE_CHECKING:

        def pauses_allowed(self, request: HttpRequest) -> dict[str, Any]:
            """See EverythingMixin."""

    def get_queryset(self, request: HttpRequest) -> QuerySet[Job]:
        """The jobs with how urgent they are, where they are listed, without what no list shows."""
        jobs = super().get_queryset(request).defer("state")
        return viewable_jobs(self, request, with_attention(jobs, request)) if _lists_jobs(request) else jobs

    def get_ordering(self, request: HttpRequest) -> Any:
        """What needs attention comes first, where jobs are listed: elsewhere that would cost two queries."""
        return [urgency_of(request).asc(), "name"] if _lists_jobs(request) else ["name"]

    @outside_transactions
    @one_look()
    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """The list, or what to do when the tables are missing. Enqueued tasks have a list of their own."""
        if request.method in READS and request.GET.get("jobs") == "enqueued":
            return HttpResponseRedirect(address_of(self.admin_site.name, "job_enqueued"))
        try:
            stamp = stamp_of_jobs(request)
            if not_modified(request, stamp):
                return with_stamp(HttpResponse(status=304), stamp)
            numbers = numbers_of(self.admin_site, request)
            context: dict[str, Any] = {
                "title": gettext("Jobs"),
                "numbers": numbers,
                "notices": [*notices(request, narrowed_jobs(self.admin_site, request)), *nights(numbers)],
            }
            context |= self.pauses_allowed(request)
            context["nothing_registered"] = not request.scheduler_has_jobs  # type: ignore[attr-defined]
            context["may_add_job"] = may_add_job(self, request)
            response = super().changelist_view(request, {**context, **(extra_context or {})})
        except (OperationalError, ProgrammingError) as error:
            if not awaits_migration(Engine().using):
                raise
            return self._without_tables(request, error)
        return with_stamp(response, stamp)

    def get_changelist_instance(self, request: HttpRequest) -> Any:
        """As Django's; the page knows its rows before they are drawn."""
        changelist = super().get_changelist_instance(request)
        page = JobPage(self, request)
        page.jobs = changelist.result_list
        for job in changelist.result_list:
            job.scheduler_page = page
        page.look()
        return changelist

    def _without_tables(self, request: HttpRequest, error: Exception) -> HttpResponse:
        context = page_context(self, request, gettext("The database is not migrated"), error=error)
        return TemplateResponse(request, "admin/scheduler/not_migrated.html", context, status=503)

    @admin.display(description=_("name"), ordering="name")
    def job_name(self, job: Job) -> SafeString:
        """The name leads to the page of the job; the run log opens beside it."""
        page = _page(job)
        return format_html(
            '<a class="sched-name" href="{}">{}</a>{}{}',
            address_of(page.site, "job_page", job.pk),
            job.name,
            _link_to_runs(job, page.site) if page.may_read_runs else "",
            format_html('<div class="sched-quiet sched-task">{}</div>', job.task) if job.task != job.name else "",
        )

    @admin.display(description=_("status"))
    def job_status(self, job: Job) -> SafeString:
        """The state as icon and word, and what is the matter."""
        view = _page(job).views[job.name]
        found = format_html("{} {}", badges.job_badge(view), badges.attention_badge(view))
        of_many = view.held_by is not None and view.held_by.group is not None  # the banner tells the rest of that
        if reason := view.held_by.short if view.held_by and of_many else view.reason[:120]:
            found = format_html('{}<div class="sched-quiet sched-reason">{}</div>', found, with_times(reason))
        return region(job, "status", found, busy=job.active_runs > 0)

    @admin.display(description=_("schedule"))
    def job_schedule(self, job: Job) -> SafeString:
        """The schedule in words, raw, and its zone."""
        schedule: Schedule | Unreadable = job.schedule
        if isinstance(schedule, Unreadable):
            return format_html('{} <code class="sched-raw">{}</code>', schedule.error[:200], schedule.text[:80])
        words = schedule.describe(gettext)
        zone = zone_of(job, settings.TIME_ZONE) if schedule.is_calendar and schedule.timezone is None else ""
        changed = badges.badge("warn", "✎", _("overridden")) if "schedule" in job.overridden_fields else ""
        raw = schedule.to_text()
        shown = raw if len(raw) <= 60 else raw[:59] + "…"
        return format_html('{} {}<div><code class="sched-raw">{}</code> {}</div>', words, changed, shown, zone)

    @admin.display(description=_("last result"), ordering="last_finished_at")
    def last_result(self, job: Job) -> SafeString:
        """How the last run ended, how long it took, and when."""
        last = _page(job).views[job.name].last
        if last is None:
            return region(job, "last", format_html('<span class="sched-quiet">{}</span>', gettext("never ran")))
        found = format_html(
            '{}<div><span class="sched-quiet">{}</span>{}</div>',
            badges.run_badge(last.status, last.errors),
            "" if last.took is None else f"{duration(last.took)} · ",
            relative(last.finished_at, _page(job).now),
        )
        return region(job, "last", found)

    @admin.display(description=_("next run"), ordering="wake_at")
    def next_start(self, job: Job) -> SafeString:
        """When the job starts next: relative, and absolute with the zone named."""
        view = _page(job).views[job.name]
        if view.next_start is None:
            return region(job, "next", next_word(view) or NOTHING)
        at, zone = view.next_start, zone_of(job, settings.TIME_ZONE)
        found = format_html("{} {}<div>{}</div>", relative(at, _page(job).now), next_word(view), instant(at, zone=zone))
        return region(job, "next", found)

    @admin.display(description=_("last 40 runs, success"))
    def history(self, job: Job) -> SafeString:
        """The last 40 runs as a picture."""
        page = _page(job)
        picture = sparkline(page.runs.get(job.pk, [])) if page.may_read_runs else ""
        return region(job, "history", format_html("{}{}", picture, success_rate(job)))

    @admin.display(description=_("actions"))
    def buttons(self, job: Job) -> SafeString:
        """What the user may do with the job, by POST."""
        return region(job, "buttons", _page(job).buttons(job))


class JobPage:
    """What the rows of one page share: the moment, the rights of the user, and the newest runs of all of them."""

    def __init__(self, asked: Any, request: HttpRequest) -> None:
        self.now = now_of(request)
        self.site = request.resolver_match.namespace if request.resolver_match else "admin"
        self.may_read_runs = may_read_runs(asked.admin_site, request)
        self._asked, self._request = asked, request
        self.jobs: list[Job] = []

    @cached_property
    def views(self) -> dict[str, JobView]:
        """How the jobs of the page stand."""
        return views_of(self.jobs, self.now, paused=paused_of(self._request))

    def look(self) -> None:
        """Learn now how the jobs stand, not only when the page is drawn."""
        self.views  # noqa: B018

    @cached_property
    def runs(self) -> dict[int, list[RunLog]]:
        """The newest runs of every job of the page, in one query."""
        if not self.jobs:
            return {}
        return recent_runs_for(self._asked.admin_site, self._request, self.jobs, BARS)

    def buttons(self, job: Job) -> SafeString:
        """What the user may do with a job of the page."""
        return self._asked.buttons_of(self._request, job)  # type: ignore[no-any-return]


def _page(job: Job) -> JobPage:
    page: JobPage = job.scheduler_page  # type: ignore[attr-defined]
    return page


def next_word(view: JobView) -> SafeString:
    """Return what is to be said with the next start of a job, or in its place: the pause that ends, the run, users."""
    words, count = "", view.waiting.users
    if view.held_by and view.next_start:
        words = gettext("when the pause ends")
    elif view.after_run:
        words = gettext("after this run")
    elif view.waiting.has_users and count is not None:
        words = ngettext("%d user waits", "%d users wait", count) % count if count else gettext("no user waits")
    return format_html('<span class="sched-quiet">{}</span>', words) if words else mark_safe("")


def _link_to_runs(job: Job, site: str) -> SafeString:
    return format_html(
        ' <a class="sched-log-link" href="{}" data-sched-dialog>{}<span class="sched-sr"> {}</span></a>',
        address_of(site, "job_runs", job.pk),
        gettext("runs"),
        gettext("of {name}").format(name=job.name),
    )


def success_rate(job: Job) -> SafeString:
    """Return the share of runs that succeeded without errors, of all there ever were."""
    ended = job.successes + job.failures + job.timeouts + job.losses
    if not ended:
        return mark_safe("")
    share = 100 * (job.successes - job.successes_with_errors) / ended
    percent = f"{share:.0f}" if share in (0, 100) else f"{min(max(share, 0.1), 99.9):.1f}"
    words = gettext("{percent} of {all} succeeded").format(percent=f"{percent} %", all=ended)
    return format_html('<div class="sched-quiet sched-rate">{}</div>', words)


def region(job: Job, name: str, content: SafeString, *, busy: bool = False) -> SafeString:
    """Mark what the live refresh may replace; `busy` asks for it more often."""
    mark = mark_safe(" data-sched-busy") if busy else ""
    return format_html('<div class="sched-region" data-sched-live="{}-{}"{}>{}</div>', job.pk, name, mark, content)
