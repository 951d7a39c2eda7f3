"""Runs in the admin: the ledger as a list, and the page of a run. Read only, but for cancel."""

from typing import TYPE_CHECKING, Any, cast

from django.conf import settings
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseNotAllowed, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from scheduler.admin import look
from scheduler.admin.asked import whole_number
from scheduler.admin.context import now_of, page_context
from scheduler.admin.filters import JobFilter, PeriodFilter
from scheduler.admin.instants import duration, instant, zone_of
from scheduler.admin.live import not_modified, stamp, with_stamp
from scheduler.admin.paging import MOST, CappedPaginator
from scheduler.admin.reach import ReachFilter, reach_of
from scheduler.admin.readonly import ReadOnlyListMixin
from scheduler.admin.runpage import facts_of_run, news_of
from scheduler.engine import control
from scheduler.exceptions import SchedulerError
from scheduler.models import Job, RunLog, Status

if TYPE_CHECKING:
    _ModelAdmin = admin.ModelAdmin[RunLog]
else:
    _ModelAdmin = object


class RunLogAdminMixin(ReadOnlyListMixin, _ModelAdmin):
    """Every run, skip and miss, newest first. Put it before any ModelAdmin."""

    list_display = ("number", "run_job", "run_status", "run_trigger", "slot", "took", "late", "nth", "summary")
    list_filter = (JobFilter, "status", "trigger", PeriodFilter, ReachFilter)
    show_facets = admin.ShowFacets.NEVER
    search_fields = ("job__name",)
    search_help_text = _("Search by the name of the job")
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
        """Leave the long texts in the database, and join nothing: MariaDB would sort every row there is."""
        return super().get_queryset(request).defer("log", "kwargs", "totals").prefetch_related("job")

    def get_search_results(self, request: HttpRequest, queryset: Any, search_term: str) -> tuple[Any, bool]:
        """Find the jobs first, which are few, then their runs."""
        if not search_term:
            return queryset, False
        jobs = Job.objects.filter(name__icontains=search_term).values_list("pk", flat=True)
        return queryset.filter(job_id__in=list(jobs[:500])), False

    def get_urls(self) -> list[URLPattern]:
        """Cancel has an address of its own."""
        view = self.admin_site.admin_view(self.cancel_view)
        return [path("<int:pk>/cancel/", view, name="scheduler_runlog_cancel"), *super().get_urls()]

    @admin.display(description=_("run"), ordering="id")
    def number(self, run: RunLog) -> SafeString:
        """The number leads to the page of the run."""
        url = reverse(f"{self.admin_site.name}:scheduler_runlog_change", args=[run.pk])
        return format_html('<a href="{}">{}</a>', url, run.pk)

    @admin.display(description=_("job"))
    def run_job(self, run: RunLog) -> SafeString:
        """The job leads to its page."""
        url = reverse(f"{self.admin_site.name}:scheduler_job_page", args=[run.job_id])
        return format_html('<a class="sched-name" href="{}">{}</a>', url, run.job.name)

    @admin.display(description=_("status"))
    def run_status(self, run: RunLog) -> SafeString:
        """The status as icon and word."""
        return look.run_badge(run.status)

    @admin.display(description=_("trigger"))
    def run_trigger(self, run: RunLog) -> str:
        """What caused the run, and who, or for which user it is."""
        return " · ".join(filter(None, (str(run.get_trigger_display()), look.run_actor(run))))

    @admin.display(description=_("slot"))
    def slot(self, run: RunLog) -> SafeString:
        """The slot, zone named."""
        return instant(run.scheduled_for, zone=zone_of(run.job, settings.TIME_ZONE))

    @admin.display(description=_("duration"))
    def took(self, run: RunLog) -> str:
        """The duration."""
        return duration(run.duration)

    @admin.display(description=_("late by"))
    def late(self, run: RunLog) -> str:
        """How long after its slot the run started."""
        return duration(run.lateness)

    @admin.display(description=_("attempt"))
    def nth(self, run: RunLog) -> int:
        """Which attempt of its slot; no column of the table, since a sort by it would read the whole ledger."""
        return run.attempt

    @admin.display(description=_("summary"))
    def summary(self, run: RunLog) -> str:
        """The reason, the error's last line, or the result, in one line."""
        return look.run_summary(run)

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """The page of a run."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        run = RunLog.objects.select_related("job").filter(pk=whole_number(object_id) or 0).first()
        if run is None:
            raise Http404(gettext("There is no run {number}.").format(number=object_id))
        mark = stamp(request, news_of(run))
        if not_modified(request, mark):
            return with_stamp(HttpResponse(status=304), mark)
        may_cancel = request.user.has_perm("scheduler.run_job") and (run.status == Status.PENDING or run.is_living)
        title = gettext("Run {number} of {job}").format(number=run.pk, job=run.job.name)
        context = page_context(self, request, title, may_cancel=may_cancel, **facts_of_run(run, now_of(request)))
        context |= extra_context or {}
        return with_stamp(TemplateResponse(request, "admin/scheduler/runlog/page.html", context), mark)

    def cancel_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        """Cancel a run that waits, or ask one that runs to stop."""
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        if not (request.user.has_perm("scheduler.run_job") and self.has_view_permission(request)):
            raise PermissionDenied
        try:
            run = control.cancel_run(pk, actor=request.user.get_username())
        except SchedulerError as refusal:
            self.message_user(request, str(refusal), messages.ERROR)
        else:
            self.log_change(request, cast(Any, run.job), gettext("Cancelled run {number}.").format(number=pk))
            self.message_user(request, gettext("Run {number} was asked to stop.").format(number=pk))
        return HttpResponseRedirect(reverse(f"{self.admin_site.name}:scheduler_runlog_change", args=[pk]))


@admin.register(RunLog)
class RunLogAdmin(RunLogAdminMixin, admin.ModelAdmin):  # type: ignore[type-arg]
    """Runs in the stock admin."""
