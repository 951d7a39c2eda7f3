"""The jobs list: columns, order, and what a page of it needs to know, in a constant number of queries."""

from datetime import datetime
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.contrib import admin
from django.db import OperationalError, ProgrammingError
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.functional import cached_property
from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from scheduler.admin import look
from scheduler.admin.asked import CarefulListMixin
from scheduler.admin.attention import FAILING, OVERDUE, STUCK, with_attention
from scheduler.admin.banner import notices
from scheduler.admin.context import may_read_runs, now_of, page_context
from scheduler.admin.filters import StateFilter, TaskFilter
from scheduler.admin.instants import NOTHING, duration, instant, relative, zone_of
from scheduler.admin.live import not_modified, stamp_of_jobs, with_stamp
from scheduler.admin.recent import recent_runs
from scheduler.admin.rowbuttons import row_buttons
from scheduler.admin.svg import sparkline
from scheduler.admin.svg.sparkline import BARS
from scheduler.engine import control
from scheduler.engine.base import Engine
from scheduler.engine.held import Paused, held_by, is_paused, paused_groups
from scheduler.engine.tables import awaits_migration
from scheduler.engine.write import outside_transactions
from scheduler.models import Group, Job, RunLog
from scheduler.models.fields import Unreadable
from scheduler.schedules import Schedule

if TYPE_CHECKING:
    _ModelAdmin = admin.ModelAdmin[Job]
else:
    _ModelAdmin = object


class JobListMixin(CarefulListMixin, _ModelAdmin):
    """What is on the list, and how it is found. Nothing is written while listing."""

    list_display = ("job_name", "job_status", "job_schedule", "last_result", "history", "next_start", "buttons")
    list_display_links = None
    list_filter = (StateFilter, ("task", TaskFilter), ("group", TaskFilter))
    search_fields = ("name", "task", "description")
    search_help_text = _("Search by name, task or description")
    show_full_result_count = False
    list_per_page = 50
    list_max_show_all = 0
    change_list_template = "admin/scheduler/job/change_list.html"

    def get_queryset(self, request: HttpRequest) -> QuerySet[Job]:
        """The jobs with how urgent they are, without what no list shows."""
        jobs = with_attention(Job._default_manager.all(), now_of(request))
        return jobs.defer("state").order_by(*self.get_ordering(request))

    def get_ordering(self, request: HttpRequest) -> Any:
        """What needs attention comes first."""
        return ["attention", "name"]

    @outside_transactions
    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """The list, or what to do when the tables are missing."""
        try:
            stamp = stamp_of_jobs(request)
            if not_modified(request, stamp):
                return with_stamp(HttpResponse(status=304), stamp)
            context: dict[str, Any] = {"title": gettext("Jobs"), "notices": notices(now_of(request))}
            context["may_pause"] = request.user.has_perm("scheduler.pause_job")
            context["nothing_registered"] = not Job.objects.exists()
            response = super().changelist_view(request, {**context, **(extra_context or {})})
        except (OperationalError, ProgrammingError) as error:
            if not awaits_migration(Engine().using):
                raise
            return self._without_tables(request, error)
        return with_stamp(response, stamp)

    def get_changelist_instance(self, request: HttpRequest) -> Any:
        """As Django's; the page knows its rows before they are drawn."""
        changelist = super().get_changelist_instance(request)
        page = JobPage(request, now_of(request))
        page.jobs = changelist.result_list
        for job in changelist.result_list:
            job.scheduler_page = page
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
            reverse(f"{page.site}:scheduler_job_page", args=[job.pk]),
            job.name,
            _link_to_runs(job, page.site) if page.may_read_runs else "",
            format_html('<div class="sched-quiet sched-task">{}</div>', job.task) if job.task != job.name else "",
        )

    @admin.display(description=_("status"))
    def job_status(self, job: Job) -> SafeString:
        """The state as icon and word, and what is the matter."""
        held = _page(job).held(job)
        found = look.job_badge(job, held)
        urgent = {STUCK: ("bad", "⌛", look.STUCK), OVERDUE: ("warn", "⚠", look.OVERDUE)}
        urgent[FAILING] = ("bad", "↯", look.FAILING)
        attention = getattr(job, "attention", None)
        if attention in urgent:
            found = format_html("{} {}", found, look.badge(*urgent[attention]))
        reason = is_paused(held) if held else look.why(job)
        if reason:
            found = format_html('{}<div class="sched-quiet sched-reason">{}</div>', found, reason[:120])
        return region(job, "status", found, busy=job.active_runs > 0)

    @admin.display(description=_("schedule"))
    def job_schedule(self, job: Job) -> SafeString:
        """The schedule in words, raw, and its zone."""
        schedule: Schedule | Unreadable = job.schedule
        if isinstance(schedule, Unreadable):
            return format_html('{} <code class="sched-raw">{}</code>', schedule.error[:200], schedule.text[:80])
        words = schedule.describe(gettext)
        zone = zone_of(job, settings.TIME_ZONE) if schedule.is_calendar and schedule.timezone is None else ""
        changed = look.badge("warn", "✎", _("overridden")) if "schedule" in job.overridden_fields else ""
        raw = schedule.to_text()
        shown = raw if len(raw) <= 60 else raw[:59] + "…"
        return format_html('{} {}<div><code class="sched-raw">{}</code> {}</div>', words, changed, shown, zone)

    @admin.display(description=_("last result"), ordering="last_finished_at")
    def last_result(self, job: Job) -> SafeString:
        """How the last run ended, how long it took, and when."""
        if not job.last_status:
            return region(job, "last", format_html('<span class="sched-quiet">{}</span>', gettext("never ran")))
        took = None
        if job.last_finished_at and job.last_run_at and job.last_finished_at >= job.last_run_at:
            took = job.last_finished_at - job.last_run_at
        found = format_html(
            '{}<div><span class="sched-quiet">{}</span>{}</div>',
            look.run_badge(job.last_status),
            "" if took is None else f"{duration(took)} · ",
            relative(job.last_finished_at, _page(job).now),
        )
        return region(job, "last", found)

    @admin.display(description=_("next run"), ordering="next_start_at")
    def next_start(self, job: Job) -> SafeString:
        """When the job starts next: relative, and absolute with the zone named."""
        at = look.next_start(job, _page(job).held(job))
        if at is None:
            return region(job, "next", _who_waits(job) or NOTHING)
        if job.active_runs and at <= _page(job).now:
            return region(job, "next", format_html('<span class="sched-quiet">{}</span>', gettext("after this run")))
        zone = zone_of(job, settings.TIME_ZONE)
        found = format_html("{}<div>{}</div>", relative(at, _page(job).now), instant(at, zone=zone))
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
        page = _page(job)
        return region(job, "buttons", row_buttons(job, page.site, run=page.may_run, pause=page.may_pause))


class JobPage:
    """What the rows of one page share: the moment, the rights of the user, and the newest runs of all of them."""

    def __init__(self, request: HttpRequest, now: datetime) -> None:
        self.now = now
        self.site = request.resolver_match.namespace if request.resolver_match else "admin"
        self.may_run = request.user.has_perm("scheduler.run_job")
        self.may_pause = request.user.has_perm("scheduler.pause_job")
        self.may_read_runs = may_read_runs(request)
        self.jobs: list[Job] = []

    def held(self, job: Job) -> Group | None:
        """The group whose pause holds a job of the page."""
        return held_by(job, self.paused)

    @cached_property
    def paused(self) -> Paused:
        """The paused groups, in one query."""
        return paused_groups()

    @cached_property
    def waiting(self) -> dict[str, int | None]:
        """How many users wait for runs of the jobs of the page that follow what users do."""
        return control.waiting_users(self.jobs)

    @cached_property
    def runs(self) -> dict[int, list[RunLog]]:
        """The newest runs of every job of the page, in one query."""
        return recent_runs([job.pk for job in self.jobs], BARS) if self.jobs else {}


def _page(job: Job) -> JobPage:
    page: JobPage = job.scheduler_page  # type: ignore[attr-defined]
    return page


def _who_waits(job: Job) -> SafeString:
    """How many users wait for a run; nothing for a job that does not follow what they do, or when that is not known."""
    count = _page(job).waiting.get(job.name)
    if count is None:
        return mark_safe("")
    words = ngettext("%d user waits", "%d users wait", count) % count if count else gettext("no user waits")
    return format_html('<span class="sched-quiet">{}</span>', words)


def _link_to_runs(job: Job, site: str) -> SafeString:
    return format_html(
        ' <a class="sched-log-link" href="{}" data-sched-dialog>{}<span class="sched-sr"> {}</span></a>',
        reverse(f"{site}:scheduler_job_runs", args=[job.pk]),
        gettext("runs"),
        gettext("of {name}").format(name=job.name),
    )


def success_rate(job: Job) -> SafeString:
    """Return the share of runs that succeeded, of all there ever were."""
    bad = job.failures + job.timeouts + job.losses
    if not job.successes and not bad:
        return mark_safe("")
    share = 100 * job.successes / (job.successes + bad)
    percent = f"{share:.0f}" if share in (0, 100) else f"{min(max(share, 0.1), 99.9):.1f}"
    words = gettext("{percent} of {all} succeeded").format(percent=f"{percent} %", all=job.successes + bad)
    return format_html('<div class="sched-quiet sched-rate">{}</div>', words)


def region(job: Job, name: str, content: SafeString, *, busy: bool = False) -> SafeString:
    """Mark what the live refresh may replace; `busy` asks for it more often."""
    mark = mark_safe(" data-sched-busy") if busy else ""
    return format_html('<div class="sched-region" data-sched-live="{}-{}"{}>{}</div>', job.pk, name, mark, content)
