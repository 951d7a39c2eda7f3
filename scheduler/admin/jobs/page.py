"""The pages of one job: its page, its run log, and the confirmation before its history is cleared."""

from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.utils.html import format_html
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from scheduler.admin import badges
from scheduler.admin.allowed import hidden_runs, may_clear, may_read_runs, runs_for
from scheduler.admin.jobs.enqueued import facts_of_tasks
from scheduler.admin.jobs.facts import facts_of, is_probed, kwargs_told, passed_of, runs_of, why_of
from scheduler.admin.jobs.history import MOST, history_on_page, lines_of
from scheduler.admin.names import address_of
from scheduler.admin.page_context import actor_of, now_of, page_context
from scheduler.admin.refresh import not_modified, stamp, with_stamp
from scheduler.admin.request_values import whole_number
from scheduler.admin.runs.live_runs import news_of_living
from scheduler.admin.runs.rows import page_of_runs
from scheduler.admin.times import instant, relative, with_times, zone_of
from scheduler.engine import control
from scheduler.engine.db.one_look import one_look
from scheduler.engine.views.job_view import JobView, attention_of, view_of
from scheduler.engine.views.pauses import holds_of, paused_groups
from scheduler.engine.views.waiting import waiting_of
from scheduler.models import Job, RunLog
from scheduler.models.carriers import is_carrier

if TYPE_CHECKING:
    from scheduler.admin.backfill.page import BackfillMixin as _ModelAdmin
else:
    _ModelAdmin = object


class JobPageMixin(_ModelAdmin):
    """One job, in full."""

    @one_look()
    def page_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        """The page of a job."""
        job = self.job_or_404(request, pk)
        newest = RunLog.objects.filter(job=job).order_by("-scheduled_for").values_list("pk", "status").first()
        paused, waiting = paused_groups(), waiting_of([job])[job.pk]
        mark = stamp(request, job.version, newest, news_of_living(job), holds_of(job, paused)[:1], waiting)
        if not_modified(request, mark):
            return with_stamp(HttpResponse(status=304), mark)
        now = now_of(request)
        view = view_of(job, now, paused, waiting, attention_of([job], now).get(job.pk, ""))
        context = {
            **self.job_context(request, job, job.shown_name),
            **facts_of(view, now),
            **_state(view, now),
            "description": job.description,
        }
        context["kwargs"] = kwargs_told(job) if context["may_change"] else ""
        hidden = partial(hidden_runs, self.admin_site, request)
        context |= history_on_page(job, hidden=hidden, kwargs=context["may_change"])
        if context["may_read_runs"]:
            runs = runs_for(self.admin_site, request, job)
            period = whole_number(request.GET.get("days", ""))
            context |= runs_of(job, now, runs, site=self.admin_site.name, period=period)
            context |= passed_of(job, now, runs)
            context |= why_of(job, request.GET.get("why", ""), now, hidden)
        template = "admin/scheduler/job/page.html"
        if is_carrier(job):
            template = "admin/scheduler/job/tasks_page.html"
            links = context["may_read_runs"]
            context["facts"] = facts_of_tasks(job, now, self.admin_site.name, links=links)
        return with_stamp(TemplateResponse(request, template, context), mark)

    def runs_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        """The run log of a job; in a dialog of the list only its table."""
        job = self.job_or_404(request, pk)
        if not may_read_runs(self.admin_site, request):
            raise PermissionDenied
        context = self.job_context(request, job, _("Run log of {name}").format(name=job.shown_name))
        page, zone = (
            page_of_runs(job, request.GET, runs_for(self.admin_site, request, job)),
            zone_of(job, settings.TIME_ZONE),
        )
        context |= {
            "page": page,
            "bounds": [instant(at, zone=zone) for at in (page.since, page.until)] if page.since or page.until else (),
            "never_ran": not job.last_status,
        }
        part = "fragment" in request.GET
        template = "includes/runs.html" if part else "job/runs.html"
        return TemplateResponse(request, f"admin/scheduler/{template}", context)

    def history_view(self, request: HttpRequest, object_id: str, extra_context: dict[str, Any] | None = None) -> Any:
        """What happened to a job, in place of Django's page, which knows only what was done in this admin."""
        job = self.job_or_404(request, whole_number(object_id) or 0)
        context = self.job_context(request, job, _("History of {name}").format(name=job.shown_name))
        context |= {
            "history": lines_of(
                job, MOST, hidden=partial(hidden_runs, self.admin_site, request), kwargs=context["may_change"]
            )
        }
        return TemplateResponse(request, "admin/scheduler/job/history.html", context | (extra_context or {}))

    def clear_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        """Ask, then remove the ended runs of a job but for the newest of each outcome; the counters stay."""
        job = self.job_or_404(request, pk)
        if not self._may_clear(request, job):
            raise PermissionDenied
        if request.method != "POST":
            context = self.job_context(request, job, _("Clear the run log of {name}?").format(name=job.shown_name))
            return TemplateResponse(request, "admin/scheduler/job/clear.html", context)
        pruned = control.clear_history(job.name, actor=actor_of(request))
        words = ngettext("%d run removed.", "%d runs removed.", pruned.total) % pruned.total
        if pruned.cursor is not None:
            words += " " + _("There are more: clear again to go on.")
        self.log_change(request, job, _("Cleared the run log.") + " " + words)
        self.message_user(request, words)
        return HttpResponseRedirect(address_of(self.admin_site.name, "job_page", job.pk))

    def job_context(self, request: HttpRequest, job: Job, title: str) -> dict[str, Any]:
        """Return what every page of a job needs."""
        return page_context(self, request, title) | {
            "job": job,
            "busy": job.active_runs > 0,
            "buttons": self.buttons_of(request, job),
            "may_read_runs": may_read_runs(self.admin_site, request),
            "may_run_with": self.may_run_with(request, job),
            "may_backfill": self.may_backfill(request, job),
            "may_change": self.has_change_permission(request, job),
            "may_clear": self._may_clear(request, job),
            "may_delete": self.has_delete_permission(request, job),
        }

    def _may_clear(self, request: HttpRequest, job: Job) -> bool:
        """Clearing deletes runs: it takes the right to that, and the sight of what goes."""
        return self.has_change_permission(request, job) and may_clear(self.admin_site, request, job)


def _state(view: JobView, now: datetime) -> dict[str, Any]:
    at, zone = view.next_start, zone_of(view.job, settings.TIME_ZONE)
    return {
        "badge": format_html("{} {}", badges.job_badge(view), badges.attention_badge(view)),
        "reason": with_times(view.reason),
        "state": view.state.label,
        "stopped": view.stopped,
        "probed": is_probed(view),
        "next_word": _("Goes on") if view.held_by else _("Next start"),
        "next_at": instant(at, zone=zone) if at else "",
        "next_away": relative(at, now) if at else "",
    }
