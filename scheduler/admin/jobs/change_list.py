"""The jobs list: columns, order, and what a page of it needs to know, in a constant number of queries."""

from datetime import datetime
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.contrib import admin
from django.db import OperationalError, ProgrammingError
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.utils.functional import cached_property
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from scheduler.admin import badges
from scheduler.admin.allowed import may_read_runs, narrowed_jobs, recent_runs_for
from scheduler.admin.banner import notices
from scheduler.admin.filters import EnqueuedFilter, StateFilter, TaskFilter
from scheduler.admin.jobs.cells import line, link_to_runs, next_word, region, short_time, success_rate
from scheduler.admin.names import address_of
from scheduler.admin.overview.numbers import nights, numbers_of
from scheduler.admin.page_context import READS, listed_of, may_add_job, now_of, page_context, paused_of, urgency_of
from scheduler.admin.refresh import not_modified, stamp_of_jobs, with_stamp
from scheduler.admin.request_values import CarefulListMixin
from scheduler.admin.svg import sparkline
from scheduler.admin.svg.sparkline import BARS
from scheduler.admin.times import NOTHING, with_times, zone_of
from scheduler.admin.viewable import viewable_jobs
from scheduler.engine.base import Engine
from scheduler.engine.db.migrated import awaits_migration
from scheduler.engine.db.one_look import one_look
from scheduler.engine.db.transactions import outside_transactions
from scheduler.engine.views.datetimes import lasted
from scheduler.engine.views.job_view import JobView, views_of
from scheduler.models import Job, RunLog
from scheduler.models.stored import Unreadable
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
        return viewable_jobs(self, request, listed_of(self, request, jobs)) if _lists_jobs(request) else jobs

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
        link = '<a title="{}" class="sched-name" href="{}">{}</a>'
        name = format_html(link, job.name, address_of(page.site, "job_page", job.pk), job.shown_name)
        task = job.task if job.task != job.name else ""
        runs = link_to_runs(job, page.site) if page.may_read_runs else ""
        below = format_html('{} <span class="sched-quiet sched-task">{}</span>', runs, task)
        return format_html("{}{}", line(name), line(below, task))

    @admin.display(description=_("status"))
    def job_status(self, job: Job) -> SafeString:
        """What is the matter, the state as icon and word, and why."""
        view = _page(job).views[job.name]
        of_many = view.held_by is not None and view.held_by.group is not None  # the banner tells the rest of that
        reason = view.held_by.short if view.held_by and of_many else view.reason[:120]
        state = badges.job_badge(view)
        if matter := badges.attention_badge(view):  # above the state: beside it, the cell would cut both
            below = format_html('{} <span class="sched-quiet sched-reason">{}</span>', state, with_times(reason))
            found = line(matter) + line(below, reason)
        else:
            found = line(state)
            if reason:
                found += line(with_times(reason), reason, "sched-quiet sched-reason")
        return region(job, "status", found, label=_("status"), busy=job.active_runs > 0)

    @admin.display(description=_("schedule"))
    def job_schedule(self, job: Job) -> SafeString:
        """The schedule in words, raw, and its zone."""
        schedule: Schedule | Unreadable = job.schedule
        if isinstance(schedule, Unreadable):
            text = format_html('<code class="sched-raw">{}</code>', schedule.text[:80])
            return badges.labelled(_("schedule"), line(schedule.error[:200], schedule.error[:200]) + line(text))
        words, raw = schedule.describe(gettext), schedule.to_text()
        zone = zone_of(job, settings.TIME_ZONE) if schedule.is_calendar and schedule.timezone is None else ""
        changed = badges.badge("warn", "✎", _("overridden")) if "schedule" in job.overridden_fields else ""
        shown = raw if len(raw) <= 60 else raw[:59] + "…"
        below = format_html('<code class="sched-raw">{}</code> {}', shown, zone)
        return badges.labelled(_("schedule"), line(format_html("{} {}", changed, words), words) + line(below, raw))

    @admin.display(description=_("last result"), ordering="last_finished_at")
    def last_result(self, job: Job) -> SafeString:
        """How the last run ended, how long it took, and when."""
        page = _page(job)
        last = page.views[job.name].last
        if last is None:
            found = line(gettext("never ran"), css="sched-quiet")
        else:
            took = "" if last.took is None else f"{lasted(last.took)} · "
            found = line(badges.run_badge(last.status, last.errors), badges.run_word(last.status, last.errors))
            found += line(format_html("{}{}", took, page.when(job, last.finished_at, "runs")), css="sched-quiet")
        return region(job, "last", found, label=_("last result"))

    @admin.display(description=_("next run"), ordering="wake_at")
    def next_start(self, job: Job) -> SafeString:
        """When the job starts next: how far away that is, and on hover and focus the instant with its zone."""
        page = _page(job)
        view = page.views[job.name]
        word = next_word(view)
        found = (page.when(job, view.next_start, "page") + word) if view.next_start else word or NOTHING
        return region(job, "next", found, label=_("next run"))

    @admin.display(description=_("last 40 runs"))
    def history(self, job: Job) -> SafeString:
        """The last 40 runs as a picture."""
        page = _page(job)
        picture = sparkline(page.runs.get(job.pk, [])) if page.may_read_runs else ""
        return region(job, "history", format_html("{}{}", picture, success_rate(job)), label=_("last 40 runs"))

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

    def when(self, job: Job, at: datetime | None, leads_to: str) -> SafeString:
        """An instant of a job of the page in short, with a link to its page or to its runs."""
        if at is None:
            return NOTHING
        address = address_of(self.site, f"job_{leads_to if self.may_read_runs else 'page'}", job.pk)
        return short_time(at, self.now, zone_of(job, settings.TIME_ZONE), address)

    def buttons(self, job: Job) -> SafeString:
        """What the user may do with a job of the page."""
        return self._asked.row_buttons_of(self._request, job)  # type: ignore[no-any-return]


def _page(job: Job) -> JobPage:
    page: JobPage = job.scheduler_page  # type: ignore[attr-defined]
    return page
