"""What failed most: failures of the last day, week or month, ranked by job and by error."""

import re
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from django.core.exceptions import PermissionDenied
from django.db.models import Count, Max, QuerySet
from django.db.models.functions import Coalesce, Right
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils.translation import gettext as _

from scheduler.admin.allowed import every_run_for, may_read_runs
from scheduler.admin.page_context import now_of, page_context
from scheduler.admin.request_values import whole_number
from scheduler.admin.runs.search_window import Reach, reach_before
from scheduler.admin.times import instant
from scheduler.engine.views.lately import FAILED
from scheduler.models import Job, RunLog, Status

if TYPE_CHECKING:
    from scheduler.admin.jobs.actions import JobActionsMixin as _ModelAdmin
else:
    _ModelAdmin = object

PERIODS = {"day": timedelta(days=1), "week": timedelta(days=7), "month": timedelta(days=30)}
MOST_JOBS, MOST_ERRORS = 20, 20
FAILED_AT = Coalesce("finished_at", "scheduled_for")
"""An old slot may have failed a moment ago."""
BUILT_IN = "builtins."
"""Classes of Python itself are stored with it and shown without it."""
SAMPLE = 1_000
"""So many of the newest failures are read to group them by error."""
TAIL = 3_000
"""Characters of the end of an error: the place is in its last lines."""
PLACE = re.compile(r'^\s*File "([^"\n]{1,500})", line (\d{1,9})(?:, in ([^\n]{1,200}))?', re.MULTILINE)
PARTS = 2
"""So many parts of a path are said."""


@dataclass(slots=True)
class ErrorGroup:
    """Failures of one type at one place."""

    kind: str
    place: str
    query: str
    count: int = 0
    last: Any = None
    jobs: set[str] = field(default_factory=set)


class FailedMostMixin(_ModelAdmin):
    """One page that ranks failures."""

    def failures_view(self, request: HttpRequest) -> HttpResponse:
        """The page; `period` is day, week or month, and `before` looks further back."""
        if not (self.has_view_permission(request) and may_read_runs(self.admin_site, request)):
            raise PermissionDenied
        period = request.GET.get("period", "day")
        period = period if period in PERIODS else "day"
        runs, reach = every_run_for(self.admin_site, request), None
        context: dict[str, Any] = {"period": period, "by_job": [], "by_error": []}
        if runs is not None:
            reach = reach_before(whole_number(request.GET.get("before", "")))
            failed = runs.order_by().filter(FAILED, scheduled_for__gte=now_of(request) - PERIODS[period])
            failed = failed if reach is None else failed.filter(pk__gte=reach.first, pk__lte=reach.last)
            context |= {"by_job": _by_job(failed), **_by_error(failed, period)}
        context |= _reach_words(reach, period)
        context |= {"periods": [("day", _("24 hours")), ("week", _("7 days")), ("month", _("30 days"))]}
        page = page_context(self, request, _("What failed most"), hidden=runs is None, **context)
        return TemplateResponse(request, "admin/scheduler/job/failures.html", page)


def _by_job(failed: QuerySet[RunLog]) -> list[dict[str, Any]]:
    counted = failed.values("job_id").annotate(count=Count("pk"), last=Max(FAILED_AT))
    rows = list(counted.order_by("-count", "job_id")[:MOST_JOBS])
    names = dict(Job.objects.filter(pk__in=[row["job_id"] for row in rows]).values_list("pk", "name"))
    return [row | {"name": names.get(row["job_id"], ""), "last": instant(row["last"])} for row in rows]


def _by_error(failed: QuerySet[RunLog], period: str) -> dict[str, Any]:
    newest = failed.order_by("-pk").annotate(tail=Right("error", TAIL), at=FAILED_AT)
    columns = ("pk", "job__name", "status", "error_class", "tail", "at")
    rows = list(newest.values_list(*columns)[: SAMPLE + 1])
    groups: dict[tuple[str, str], ErrorGroup] = {}
    for pk, job, status, error_class, tail, at in rows[:SAMPLE]:
        place, search = place_of(tail)
        kind = error_class or _kind_without_class(status)
        query = {"outcome": "failed", "period": period}
        query |= {"error": error_class} if error_class else {"status__exact": status}
        query |= {"q": search} if search else {}
        group = groups.setdefault((kind, place), ErrorGroup(kind.removeprefix(BUILT_IN), place, urlencode(query)))
        group.count += 1
        group.jobs.add(job)
        group.last = group.last or {"pk": pk, "at": instant(at), "words": tail.rstrip().rpartition("\n")[2][:200]}
    ranked = sorted(groups.values(), key=lambda one: (-one.count, one.kind, one.place))
    return {"by_error": ranked[:MOST_ERRORS], "sampled": SAMPLE if len(rows) > SAMPLE else 0}


def place_of(error: str) -> tuple[str, str]:
    """Return where an error was raised, by the last frame of its traceback, and what to search for to find others."""
    frames = PLACE.findall(error)
    if not frames:
        return "", ""
    path, line, function = frames[-1]
    parts = re.split(r"[\\/]", path)
    said, search = f"{'/'.join(parts[-PARTS:])}:{line}", f'{parts[-1]}", line {line}'
    return (f"{said} {function}", f"{search}, in {function}") if function else (said, search)


def _kind_without_class(status: str) -> str:
    return _("errors reported by a run that succeeded") if status == Status.SUCCEEDED else str(Status(status).label)


def _reach_words(reach: Reach | None, period: str) -> dict[str, Any]:
    if reach is None:
        return {}
    further = f"?{urlencode({'period': period, 'before': reach.before})}" if reach.before else ""
    return {"reach": reach, "further": further, "newest": "" if reach.newest else f"?period={period}"}
