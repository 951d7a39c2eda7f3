"""The overview: the last and the next 24 hours in lanes, and the load of the week to come."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from django.contrib.admin import AdminSite
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from scheduler.admin.allowed import jobs_for, may_read_runs, may_see_list, narrowed_jobs, recent_runs_for
from scheduler.admin.banner import notices
from scheduler.admin.names import address_of
from scheduler.admin.overview.day_lanes import DAY, MOST_RUNS, drawn, future_lanes, past_lanes
from scheduler.admin.overview.next_hour import next_hour
from scheduler.admin.overview.numbers import nights, numbers_of
from scheduler.admin.overview.week_load import MOST_JOBS, MOST_LISTED, OF_LOAD, load_of
from scheduler.admin.page_context import may_add_job, now_of, page_context, paused_of, with_attention
from scheduler.admin.refresh import not_modified, stamp_of_jobs, with_stamp
from scheduler.admin.request_values import instant_of_query, whole_number, zone_asked
from scheduler.admin.runs.recent import COLUMNS
from scheduler.admin.svg import lanes, load_map
from scheduler.admin.svg.load import FEWEST, is_even
from scheduler.admin.times import instant
from scheduler.engine.db.fast_read import read_parts
from scheduler.engine.db.one_look import one_look
from scheduler.models import Instance, Job

if TYPE_CHECKING:
    from scheduler.admin.jobs.actions import JobActionsMixin as _ModelAdmin
else:
    _ModelAdmin = object

LANES = 20


class OverviewMixin(_ModelAdmin):
    """One page that shows a day back, a day ahead, and the week."""

    @one_look()
    def overview_view(self, request: HttpRequest) -> HttpResponse:
        """The overview; `page` chooses which twenty jobs have lanes."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        mark = stamp_of_jobs(request, zone_asked(request).key)
        if not_modified(request, mark):
            return with_stamp(HttpResponse(status=304), mark)
        response = TemplateResponse(request, "admin/scheduler/job/overview.html", self._overview(request))
        return with_stamp(response, mark)

    def _overview(self, request: HttpRequest) -> dict[str, Any]:
        now, site = now_of(request), self.admin_site.name
        number = whole_number(request.GET.get("page", "")) or 1
        first = (min(number, 10_000) - 1) * LANES
        wanted = (
            with_attention(jobs_for(self.admin_site, request), request)
            .defer("state")
            .order_by("attention", "-last_run_at", "name")
        )
        jobs = list(wanted[first : first + LANES + 1])
        shown = jobs[:LANES]
        paused = paused_of(request)
        future = future_lanes(shown, now, site, paused)
        coming, without_start = drawn(future)
        numbers = numbers_of(self.admin_site, request)
        return page_context(self, request, _("Overview")) | {
            "numbers": numbers,
            **(self._past(request, shown) if may_read_runs(self.admin_site, request) else {}),
            "notices": [*notices(request, narrowed_jobs(self.admin_site, request)), *nights(numbers)],
            "nothing_registered": not jobs and number == 1,
            "may_add_job": may_add_job(self, request),
            "may_see_instances": may_see_list(self.admin_site, request, Instance),
            **_hour_to_come(self.admin_site, request),
            "future": lanes(coming, now, now, _future_words(future), "sched-missed-2") if coming else "",
            "without_start": without_start,
            **self._load(request),
            "from": instant(now - DAY),
            "until": instant(now + timedelta(days=1)),
            "previous_page": number - 1 if number > 1 else None,
            "next_page": number + 1 if len(jobs) > LANES else None,
        }

    def _load(self, request: HttpRequest) -> dict[str, Any]:
        """Return what the page tells of the week, in the zone of the reader; `hour` chooses what is listed."""
        now, zone = now_of(request), zone_asked(request)
        midnight = now.astimezone(zone).replace(hour=0, minute=0, second=0, microsecond=0, fold=0)
        hour = instant_of_query(request.GET.get("hour", ""))
        hour = hour and hour.astimezone(zone).replace(minute=0, second=0, microsecond=0, fold=0)
        jobs = jobs_for(self.admin_site, request).filter(enabled=True).order_by("name")
        going = read_parts(jobs[: MOST_JOBS + 1], OF_LOAD)
        load = load_of(going[:MOST_JOBS], midnight, now, paused_of(request), hour)
        site, counts = self.admin_site.name, [round(count) for count in load.starts.values() if count >= FEWEST]
        return {
            "load": load_map(load.starts, midnight, now, _address_of_hour),
            "load_zone": zone.key,
            "load_of_first": MOST_JOBS if len(going) > MOST_JOBS else None,
            "fewest_starts": min(counts, default=0),
            "most_starts": max(counts, default=0),
            "is_even": is_even(min(counts, default=0), max(counts, default=0)),
            "crowds": [(instant(crowd.at), crowd) for crowd in load.crowds],
            "hour": hour and (instant(hour), instant(hour + timedelta(hours=1))),
            "listed": [
                (instant(at) if at else "", address_of(site, "job_page", pk), name)
                for at, pk, name in load.listed[:MOST_LISTED]
            ],
            "unlisted": max(0, len(load.listed) - MOST_LISTED),
        }

    def _past(self, request: HttpRequest, jobs: Sequence[Job]) -> dict[str, Any]:
        now, columns = now_of(request), (*COLUMNS, "coalesced_from")
        runs = recent_runs_for(self.admin_site, request, jobs, MOST_RUNS, since=now - DAY, columns=columns)
        past = past_lanes(jobs, runs, now, self.admin_site.name)
        ran, without_run = drawn(past)
        picture = lanes(ran, now - DAY, now, _past_words(past), "sched-missed") if ran else ""
        return {"past": picture, "without_run": without_run}


def _hour_to_come(site: AdminSite, request: HttpRequest) -> dict[str, Any]:
    starts, more = next_hour(site, request)
    return {"next_hour": starts, "more_due": more, "may_read_runs": may_read_runs(site, request)}


def _address_of_hour(at: datetime) -> str:
    return f"?{urlencode({'hour': f'{at.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}'})}#sched-hour"


def _past_words(rows: list[Any]) -> str:
    ran = sum(1 for row in rows if row.bands)
    words = ngettext(
        "The last 24 hours: {ran} of {all} job ran", "The last 24 hours: {ran} of {all} jobs ran", len(rows)
    )
    return words.format(ran=ran, all=len(rows))


def _future_words(rows: list[Any]) -> str:
    due = sum(1 for row in rows if row.bands)
    words = ngettext(
        "The next 24 hours: {due} of {all} job is due", "The next 24 hours: {due} of {all} jobs are due", len(rows)
    )
    return words.format(due=due, all=len(rows))
