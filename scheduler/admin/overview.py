"""The overview: the last and the next 24 hours in lanes, and the load of the week to come."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from scheduler.admin.asked import whole_number
from scheduler.admin.attention import with_attention
from scheduler.admin.banner import notices
from scheduler.admin.context import may_read_runs, now_of, page_context
from scheduler.admin.daylanes import DAY, MOST_RUNS, future_lanes, past_lanes
from scheduler.admin.instants import instant
from scheduler.admin.live import not_modified, stamp_of_jobs, with_stamp
from scheduler.admin.recent import COLUMNS, recent_runs
from scheduler.admin.svg import lanes, load_map
from scheduler.admin.weekload import COLUMNS as LOAD_COLUMNS
from scheduler.admin.weekload import MOST_JOBS, load_of
from scheduler.engine.held import held_by, paused_groups
from scheduler.models import Job

if TYPE_CHECKING:
    from scheduler.admin.actions import JobActionsMixin as _ModelAdmin
else:
    _ModelAdmin = object

LANES = 20


class OverviewMixin(_ModelAdmin):
    """One page that shows a day back, a day ahead, and the week."""

    def overview_view(self, request: HttpRequest) -> HttpResponse:
        """The overview; `page` chooses which twenty jobs have lanes."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        mark = stamp_of_jobs(request)
        if not_modified(request, mark):
            return with_stamp(HttpResponse(status=304), mark)
        response = TemplateResponse(request, "admin/scheduler/job/overview.html", self._overview(request))
        return with_stamp(response, mark)

    def _overview(self, request: HttpRequest) -> dict[str, Any]:
        now, site = now_of(request), self.admin_site.name
        number = whole_number(request.GET.get("page", "")) or 1
        first = (min(number, 10_000) - 1) * LANES
        wanted = with_attention(Job.objects.all(), now).defer("state").order_by("attention", "-last_run_at", "name")
        jobs = list(wanted[first : first + LANES + 1])
        shown = jobs[:LANES]
        midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
        paused = paused_groups()
        going = Job.objects.filter(enabled=True).only(*LOAD_COLUMNS)[:MOST_JOBS]
        load = load_of((job for job in going if not held_by(job, paused)), midnight, now)
        future = future_lanes(shown, now, site, paused)
        return page_context(self, request, _("Overview")) | {
            "past": _past(shown, now, site) if may_read_runs(request) else "",
            "notices": notices(now),
            "nothing_registered": not jobs and number == 1,
            "future": lanes(future, now, _future_words(future), "sched-missed-2"),
            "load": load_map(load.starts, midnight),
            "most_starts": round(max(load.starts.values(), default=0)),
            "crowds": [(instant(crowd.at), crowd) for crowd in load.crowds],
            "from": instant(now - DAY),
            "until": instant(now + timedelta(days=1)),
            "previous_page": number - 1 if number > 1 else None,
            "next_page": number + 1 if len(jobs) > LANES else None,
        }


def _past(jobs: Sequence[Job], now: datetime, site: str) -> SafeString:
    columns = (*COLUMNS, "coalesced_from")
    runs = recent_runs([job.pk for job in jobs], MOST_RUNS, since=now - DAY, columns=columns)
    past = past_lanes(jobs, runs, now, site)
    return lanes(past, now - DAY, _past_words(past), "sched-missed")


def _past_words(rows: list[Any]) -> str:
    ran = sum(1 for row in rows if row.bands)
    return _("The last 24 hours: {ran} of {all} jobs ran").format(ran=ran, all=len(rows))


def _future_words(rows: list[Any]) -> str:
    due = sum(1 for row in rows if row.bands)
    return _("The next 24 hours: {due} of {all} jobs are due").format(due=due, all=len(rows))
