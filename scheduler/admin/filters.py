"""Filters of the lists, by GET, so that a filtered list can be bookmarked."""

from collections.abc import Iterator
from datetime import timedelta
from functools import reduce
from operator import or_
from typing import Any
from uuid import UUID

from django.conf import settings
from django.contrib import admin
from django.db.models import Count, Q, QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from scheduler.admin.allowed import every_run_for, jobs_for
from scheduler.admin.overview.numbers import lately_of
from scheduler.admin.page_context import judged_of, newest_run, now_of, tasks_and_groups, with_attention
from scheduler.admin.request_values import whole_number
from scheduler.admin.runs.search_window import day_of_query
from scheduler.engine.views.conditions import CALM, IN_STATE, URGENT, urgent
from scheduler.engine.views.lately import FAILED, MISSED, due_soon, jobs_lately, late
from scheduler.models import Job, JobState, RunLog
from scheduler.models.carriers import CARRIERS

MOST_CHOICES = 40
PERIODS = {"hour": timedelta(hours=1), "day": timedelta(days=1), "week": timedelta(days=7), "month": timedelta(days=30)}


STATES = {
    "running": _("running"), "broken": _("broken"), "stuck": _("stuck"), "overdue": _("overdue"),
    "failing": _("failing"), "not_fresh": _("success overdue"), "deadline_missed": _("deadline missed"),
    "slower": _("slower than usual"), "paused": _("paused"), "disabled": _("disabled"), "orphaned": _("orphaned"),
    "invalid": _("invalid"),
}  # fmt: skip
DUE = _("due in the next hour")
LATELY = {"missed": _("missed in 24 h"), "late": _("late in 24 h")}
OUTCOMES = {"running": _("running"), "failed": _("failed"), "missed": _("missed"), "late": _("late")}


class StateFilter(admin.SimpleListFilter):
    """Jobs by state, and by what is the matter with them."""

    title = _("state")
    parameter_name = "state"
    template = "admin/scheduler/includes/state_filter.html"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        """The states, the urgent ones first, with how many jobs there are in each; none is said by no number."""
        runs = every_run_for(model_admin.admin_site, request)
        self.lately = {} if runs is None else jobs_lately(runs, newest_run(request), now_of(request))
        counts = _count_states(request, model_admin, self.lately)
        words = {
            "attention": _("needs attention"),
            **STATES,
            "due": DUE,
            **{name: LATELY[name] for name in self.lately},
        }
        return [(name, f"{word} ({counts[name]})" if counts.get(name) else word) for name, word in words.items()]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Job]) -> QuerySet[Job]:
        """Keep the jobs in the chosen state."""
        chosen = self.value()
        if chosen == "attention":
            return with_attention(queryset, request).filter(attention__lt=CALM)
        if chosen == "due":
            return queryset.filter(due_soon(now_of(request)))
        if chosen in LATELY:  # what ran is for those to know who may see the runs
            return queryset.filter(self.lately[chosen]) if chosen in self.lately else queryset.none()
        if chosen in URGENT:
            return queryset.filter(urgent(now_of(request), judged_of(request))[chosen])
        return queryset.filter(IN_STATE[JobState(chosen)]) if chosen in STATES else queryset


def _count_states(request: HttpRequest, model_admin: Any, lately: dict[str, Q]) -> dict[str, int]:
    """Count jobs by state, and by what happened to them lately, in one query.

    The runs of a day are not looked through again for what the numbers above the list have found none of.
    """
    now, numbers = now_of(request), lately_of(model_admin.admin_site, request)
    lately = {name: where for name, where in lately.items() if getattr(numbers, name) or not numbers.whole}
    reasons = urgent(now, judged_of(request))
    found = reasons | {name: IN_STATE[JobState(name)] for name in STATES if name not in URGENT}
    found |= {"attention": reduce(or_, reasons.values()), "due": due_soon(now), **lately}
    counts = (
        model_admin.get_queryset(request)
        .filter(~CARRIERS)
        .order_by()
        .aggregate(**{f"in_{name}": Count("pk", filter=where) for name, where in found.items()})
    )
    return {name.removeprefix("in_"): count for name, count in counts.items()}


class TaskFilter(admin.AllValuesFieldListFilter):
    """Jobs by task, or by group; nothing to choose while every job has the same. One query finds both."""

    def __init__(
        self, field: Any, request: HttpRequest, params: Any, model: Any, model_admin: Any, field_path: str
    ) -> None:
        super().__init__(field, request, params, model, model_admin, field_path)
        found = tasks_and_groups(request, model_admin.get_queryset(request))
        self.lookup_choices = sorted({pair[field.name] for pair in found})  # type: ignore[assignment]

    def has_output(self) -> bool:
        """Whether there is something to choose from, and not too much."""
        return 1 < len(self.lookup_choices) <= MOST_CHOICES

    def choices(self, changelist: Any) -> Iterator[Any]:
        """Name the empty value: it means “in no group”."""
        for choice in super().choices(changelist):
            yield choice | {"display": choice["display"] or _("none")}


class EnqueuedFilter(admin.SimpleListFilter):
    """Jobs, or those that only carry tasks that were enqueued: one for each function and queue."""

    title = _("jobs")
    parameter_name = "jobs"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        """The only choice."""
        return [("enqueued", _("enqueued tasks"))]

    def choices(self, changelist: Any) -> Iterator[Any]:
        """Name the choice that is made at first."""
        first, *rest = super().choices(changelist)
        yield first | {"display": _("with a schedule")}
        yield from rest

    def queryset(self, request: HttpRequest, queryset: QuerySet[Job]) -> QuerySet[Job]:
        """Keep the ones or the others."""
        return queryset.filter(CARRIERS if self.value() == "enqueued" else ~CARRIERS)


class ErrorsFilter(admin.SimpleListFilter):
    """Runs that reported errors: they may have succeeded all the same, and count as failed."""

    title = _("errors")
    parameter_name = "errors"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        """The only choice."""
        return [("some", _("with errors"))]

    def queryset(self, request: HttpRequest, queryset: QuerySet[RunLog]) -> QuerySet[RunLog]:
        """Keep the runs with errors."""
        return queryset.filter(errors__gt=0) if self.value() == "some" else queryset


class OutcomeFilter(admin.SimpleListFilter):
    """Runs that live, and those with which something went wrong: what the numbers on other pages count."""

    title = _("at a glance")
    parameter_name = "outcome"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        """What the numbers count."""
        return list(OUTCOMES.items())

    def queryset(self, request: HttpRequest, queryset: Any) -> QuerySet[RunLog]:
        """Keep the runs of the chosen outcome."""
        match self.value():
            case "running":
                found = queryset.living()
            case "failed":
                found = queryset.filter(FAILED)
            case "missed":
                found = queryset.filter(MISSED)
            case "late":
                found = queryset.filter(late())
            case _:
                found = queryset
        runs: QuerySet[RunLog] = found
        return runs


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


class GivenFilter(admin.SimpleListFilter):
    """What a link asks for; there is nothing to choose from."""

    template = "admin/scheduler/includes/job_filter.html"
    column = ""

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        """What was asked for, said as it is."""
        given = request.GET.get(self.parameter_name or "", "")
        return [(given, given[:100])] if given else []

    def queryset(self, request: HttpRequest, queryset: QuerySet[RunLog]) -> QuerySet[RunLog]:
        """Keep the runs with this value."""
        return queryset.filter(**{self.column: self.value()}) if self.value() else queryset


class ErrorFilter(GivenFilter):
    """Runs that failed with an exception of one class."""

    title, parameter_name, column = _("error"), "error", "error_class"


class InstanceFilter(GivenFilter):
    """Runs of one process."""

    title, parameter_name = _("instance"), "instance"

    def queryset(self, request: HttpRequest, queryset: QuerySet[RunLog]) -> QuerySet[RunLog]:
        """Keep the runs of the instance; of what is no id there are none."""
        try:
            return queryset.filter(instance_id=UUID(self.value())) if self.value() else queryset
        except ValueError:
            return queryset.none()


class DayFilter(GivenFilter):
    """Runs whose slots lie on a day of the project's zone, which is written in a field."""

    title, parameter_name = _("day"), "day"
    template = "admin/scheduler/includes/day_filter.html"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        """Always one, or Django would leave the filter out."""
        return [("", "")]

    def choices(self, changelist: Any) -> Iterator[Any]:
        """What the form of the field sends besides."""
        yield {"zone": settings.TIME_ZONE}
        gone = ("p", "before", self.parameter_name)
        yield from ({"name": name, "value": value} for name, value in changelist.params.items() if name not in gone)

    def queryset(self, request: HttpRequest, queryset: QuerySet[RunLog]) -> QuerySet[RunLog]:
        """Keep the runs of the day."""
        day = day_of_query(request)
        return queryset if day is None else queryset.filter(scheduled_for__gte=day[0], scheduled_for__lt=day[1])


class JobFilter(admin.SimpleListFilter):
    """Runs of one job, when a link asks for it; there is no list to choose from, for jobs may be thousands."""

    title = _("job")
    parameter_name = "job"
    template = "admin/scheduler/includes/job_filter.html"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        """The chosen job only."""
        chosen = whole_number(request.GET.get(self.parameter_name, ""))
        jobs = jobs_for(model_admin.admin_site, request).filter(pk=chosen).only("name", "source") if chosen else ()
        return [(str(job.pk), job.shown_name) for job in jobs]

    def queryset(self, request: HttpRequest, queryset: QuerySet[RunLog]) -> QuerySet[RunLog]:
        """Keep the runs of the job."""
        chosen = whole_number(self.value() or "")
        return queryset if chosen is None else queryset.filter(job_id=chosen)
