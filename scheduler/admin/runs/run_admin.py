"""Runs in the admin: the ledger as a list, and the page of a run. Read only, but for cancel and run again."""

from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.db.models import Q, QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from scheduler.admin import badges
from scheduler.admin.allowed import jobs_for, may_change, sees_every_job
from scheduler.admin.columns import column
from scheduler.admin.filters import (
    DayFilter,
    ErrorFilter,
    ErrorsFilter,
    InstanceFilter,
    JobFilter,
    OutcomeFilter,
    PeriodFilter,
)
from scheduler.admin.names import address_of, labelled
from scheduler.admin.page_context import now_of, page_context
from scheduler.admin.readonly import ReadOnlyListMixin
from scheduler.admin.refresh import not_modified, stamp, with_stamp
from scheduler.admin.request_values import is_findable, whole_number
from scheduler.admin.runs.again import RunActionsMixin
from scheduler.admin.runs.enqueue_again import EnqueueAgainMixin
from scheduler.admin.runs.failed_again import FailedAgainMixin
from scheduler.admin.runs.page import facts_of_run, news_of
from scheduler.admin.runs.paging import MOST, CappedPaginator
from scheduler.admin.runs.search_window import ReachFilter, reach_of
from scheduler.admin.times import instant, zone_of
from scheduler.engine.views.datetimes import lasted
from scheduler.models import RunLog
from scheduler.models.result_ids import slot_of

if TYPE_CHECKING:
    _ModelAdmin = admin.ModelAdmin[RunLog]
else:
    _ModelAdmin = object


SEARCHED = (DayFilter, InstanceFilter, ErrorFilter)


class RunLogAdminMixin(RunActionsMixin, FailedAgainMixin, EnqueueAgainMixin, ReadOnlyListMixin, _ModelAdmin):
    """Every run, skip and miss, newest first. Put it before any ModelAdmin."""

    list_display = ("number", "run_job", "run_status", "run_trigger", "slot", "took", "late", "nth", "summary")
    list_filter = (JobFilter, OutcomeFilter, "status", ErrorsFilter, "trigger", PeriodFilter, *SEARCHED, ReachFilter)
    show_facets = admin.ShowFacets.NEVER
    search_fields = ("job__name", "error")
    search_help_text = _("Search by the name of the job, in the text of errors, or by the id of a result")
    show_full_result_count = False
    paginator = CappedPaginator
    list_per_page = 50
    list_max_show_all = 0
    change_list_template = "admin/scheduler/runlog/change_list.html"

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """The list, under its own name, and how far back it has looked."""
        response = super().changelist_view(request, {"title": gettext("Run log"), **(extra_context or {})})
        context = getattr(response, "context_data", None) or {}
        if "cl" in context:
            context |= reach_of(context["cl"]) | {"capped": MOST if context["cl"].result_count == MOST else None}
        return response

    def get_ordering(self, request: HttpRequest) -> tuple[str, ...]:
        """Newest first; of one job in the order that its index has."""
        one_job = whole_number(request.GET.get("job", "")) is not None
        return ("-scheduled_for", "-attempt") if one_job else ("-id",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[RunLog]:
        """Runs of the jobs that the user may see. Leave the long texts in the database, and join nothing: MariaDB would
        sort every row there is."""
        runs = super().get_queryset(request).defer("log", "kwargs", "totals").prefetch_related("job")
        if sees_every_job(self.admin_site, request):
            return runs
        return runs.filter(job_id__in=jobs_for(self.admin_site, request).values("pk"))

    def get_search_results(self, request: HttpRequest, queryset: Any, search_term: str) -> tuple[Any, bool]:
        """Find the jobs first, which are few, then their runs, and those whose error says it, within the reach;
        by the id of a result the attempts of its task."""
        if not search_term:
            return queryset, False
        if (meant := slot_of(search_term.strip())) is not None:
            return queryset.filter(job_id=meant[0], scheduled_for=meant[1]), False
        if not is_findable(search_term):
            return queryset.none(), False
        jobs = jobs_for(self.admin_site, request).filter(name__icontains=search_term).values_list("pk", flat=True)
        said = Q(error__icontains=search_term)
        return queryset.filter(Q(job_id__in=list(jobs[:500])) | said), False

    def get_urls(self) -> list[URLPattern]:
        """Each button has an address of its own."""
        views = {"cancel": self.cancel_view, "again": self.again_view}
        ours = [
            path(f"<int:pk>/{name}/", self.admin_site.admin_view(view), name=labelled(f"runlog_{name}"))
            for name, view in views.items()
        ]
        return [*ours, *super().get_urls()]

    @column(_("run"), ordering="id")
    def number(self, run: RunLog) -> SafeString:
        """The number leads to the page of the run."""
        url = address_of(self.admin_site.name, "runlog_change", run.pk)
        return format_html('<a href="{}">{}</a>', url, run.pk)

    @column(_("job"))
    def run_job(self, run: RunLog) -> SafeString:
        """The job leads to its page."""
        url = address_of(self.admin_site.name, "job_page", run.job_id)
        return format_html('<a class="sched-name" href="{}">{}</a>', url, run.job.shown_name)

    @column(_("status"))
    def run_status(self, run: RunLog) -> SafeString:
        """The status as icon and word."""
        return badges.badge_of(run)

    @column(_("trigger"))
    def run_trigger(self, run: RunLog) -> str:
        """What caused the run, and who, or for which user it is."""
        caused_by = (str(run.get_trigger_display()), badges.run_actor(run))
        return " · ".join(filter(None, caused_by))

    @column(_("slot"))
    def slot(self, run: RunLog) -> SafeString:
        """The slot, zone named."""
        return instant(run.scheduled_for, zone=zone_of(run.job, settings.TIME_ZONE))

    @column(_("duration"))
    def took(self, run: RunLog) -> str:
        """The duration."""
        return lasted(run.duration)

    @column(_("late by"))
    def late(self, run: RunLog) -> str:
        """How long after its slot the run started."""
        return lasted(run.lateness if run.cause.has_lateness else None)

    @column(_("attempt"))
    def nth(self, run: RunLog) -> int:
        """Which attempt of its slot; no column of the table, since a sort by it would read the whole ledger."""
        return run.attempt

    @column(_("summary"))
    def summary(self, run: RunLog) -> str:
        """The reason, the error's last line, or the result, in one line."""
        return badges.run_summary(run)

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """The page of a run."""
        run = self.run_or_404(request, whole_number(object_id) or 0)
        mark = stamp(request, news_of(run))
        if not_modified(request, mark):
            return with_stamp(HttpResponse(status=304), mark)
        title = gettext("Run {number} of {job}").format(number=run.pk, job=run.job.shown_name)
        reads_job = may_change(self.admin_site, request, run.job)
        context = page_context(self, request, title, **facts_of_run(run, now_of(request), reads_job=reads_job))
        context["may_cancel"] = self.may_cancel(request, run)
        context["may_run_again"] = self.may_run_again(request, run)
        context |= extra_context or {}
        return with_stamp(TemplateResponse(request, "admin/scheduler/runlog/page.html", context), mark)

    def run_or_404(self, request: HttpRequest, pk: int) -> RunLog:
        """Return a run that the user may see, whole, or raise Http404; PermissionDenied without the right to it."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        seen = self.get_queryset(request).filter(pk=pk).order_by().values("pk")
        run = RunLog.objects.select_related("job").filter(pk__in=seen).first()
        if run is None:
            raise Http404(gettext("There is no run {number}.").format(number=pk))
        if not self.has_view_permission(request, run):
            raise PermissionDenied
        return run


@admin.register(RunLog)
class RunLogAdmin(RunLogAdminMixin, admin.ModelAdmin):  # type: ignore[type-arg]
    """Runs in the stock admin."""
