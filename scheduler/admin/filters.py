"""Filters of the lists, by GET, so that a filtered list can be bookmarked."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

from django.contrib import admin
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from scheduler.admin.asked import whole_number
from scheduler.admin.attention import CALM, FAILURES, stuck_jobs, with_attention
from scheduler.admin.context import now_of
from scheduler.engine.held import paused_groups, stopped_by
from scheduler.engine.overdue import overdue
from scheduler.models import Job, RunLog

MOST_CHOICES = 40
PERIODS = {"hour": timedelta(hours=1), "day": timedelta(days=1), "week": timedelta(days=7), "month": timedelta(days=30)}


class StateFilter(admin.SimpleListFilter):
    """Jobs by state, and by what is the matter with them."""

    title = _("state")
    parameter_name = "state"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        """The states, the urgent ones first."""
        return [
            ("attention", _("needs attention")), ("running", _("running")), ("broken", _("broken")),
            ("stuck", _("stuck")), ("overdue", _("overdue")), ("failing", _("failing")), ("paused", _("paused")),
            ("disabled", _("disabled")), ("orphaned", _("orphaned")), ("invalid", _("invalid")),
        ]  # fmt: skip

    def queryset(self, request: HttpRequest, queryset: QuerySet[Job]) -> QuerySet[Job]:
        """Keep the jobs in the chosen state."""
        chosen = self.value()
        if chosen == "attention":
            return with_attention(queryset, now_of(request)).filter(attention__lt=CALM)
        if chosen == "overdue":
            return queryset.filter(overdue(now_of(request)))
        if chosen == "paused":
            return queryset.filter(stopped_by(paused_groups()))
        conditions: dict[str, Q] = {
            "running": Q(active_runs__gt=0),
            "broken": Q(broken_at__isnull=False),
            "stuck": Q(pk__in=stuck_jobs()),
            "failing": Q(last_status__in=FAILURES),
            "disabled": Q(enabled=False),
            "orphaned": Q(orphaned_at__isnull=False),
            "invalid": ~Q(problem="") & Q(orphaned_at__isnull=True),
        }
        return queryset.filter(conditions.get(chosen or "", Q()))


class TaskFilter(admin.AllValuesFieldListFilter):
    """Jobs by task; nothing to choose while every job has the same."""

    def has_output(self) -> bool:
        """Whether there is something to choose from, and not too much."""
        return 1 < len(self.lookup_choices) <= MOST_CHOICES

    def choices(self, changelist: Any) -> Iterator[Any]:
        """Name the empty value: it means “in no group”."""
        for choice in super().choices(changelist):
            yield choice | {"display": choice["display"] or _("none")}


class PeriodFilter(admin.SimpleListFilter):
    """Runs by the age of their slot."""

    title = _("period")
    parameter_name = "period"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        """The periods."""
        return [
            ("hour", _("last hour")), ("day", _("last 24 hours")), ("week", _("last 7 days")),
            ("month", _("last 30 days")),
        ]  # fmt: skip

    def queryset(self, request: HttpRequest, queryset: QuerySet[RunLog]) -> QuerySet[RunLog]:
        """Keep the runs of the chosen period."""
        period = PERIODS.get(self.value() or "")
        return queryset if period is None else queryset.filter(scheduled_for__gte=now_of(request) - period)


class JobFilter(admin.SimpleListFilter):
    """Runs of one job, when a link asks for it; there is no list to choose from, for jobs may be thousands."""

    title = _("job")
    parameter_name = "job"
    template = "admin/scheduler/includes/job_filter.html"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        """The chosen job only."""
        chosen = whole_number(request.GET.get(self.parameter_name, ""))
        jobs = Job.objects.filter(pk=chosen).only("name") if chosen else ()
        return [(str(job.pk), job.name) for job in jobs]

    def queryset(self, request: HttpRequest, queryset: QuerySet[RunLog]) -> QuerySet[RunLog]:
        """Keep the runs of the job."""
        chosen = whole_number(self.value() or "")
        return queryset if chosen is None else queryset.filter(job_id=chosen)
