"""The pages of one job: its page, its run log, and the confirmation before its history is cleared."""

from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from scheduler.admin import look
from scheduler.admin.context import may_read_runs, now_of, page_context
from scheduler.admin.instants import instant, relative, with_times, zone_of
from scheduler.admin.jobfacts import facts_of, runs_of, why_of
from scheduler.admin.live import news_of_pause, not_modified, stamp, with_stamp
from scheduler.admin.living import news_of_living
from scheduler.admin.rowbuttons import row_buttons
from scheduler.admin.runrows import page_of_runs
from scheduler.engine import control
from scheduler.engine.held import held_by, paused_groups, state_of
from scheduler.models import Group, Job, RunLog

if TYPE_CHECKING:
    from scheduler.admin.actions import JobActionsMixin as _ModelAdmin
else:
    _ModelAdmin = object


class JobPageMixin(_ModelAdmin):
    """One job, in full."""

    def page_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        """The page of a job."""
        job = self.job_or_404(request, pk)
        newest = RunLog.objects.filter(job=job).order_by("-scheduled_for").values_list("pk", "status").first()
        held = held_by(job, paused_groups())
        waiting = control.waiting_users([job])
        mark = stamp(request, job.version, newest, news_of_living(job), held and news_of_pause(held), waiting)
        if not_modified(request, mark):
            return with_stamp(HttpResponse(status=304), mark)
        now = now_of(request)
        context = {
            **self.job_context(request, job, job.name),
            **facts_of(job, now, held, waiting),
            **_next_start(job, now, held),
            **_state(job, held),
            "description": job.description,
            "paused_until": instant(job.paused_until, zone=zone_of(job, settings.TIME_ZONE)),
        }
        if context["may_read_runs"]:
            context |= runs_of(job, now) | why_of(job, request.GET.get("why", ""), now)
        response = TemplateResponse(request, "admin/scheduler/job/page.html", context)
        return with_stamp(response, mark)

    def runs_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        """The run log of a job; in a dialog of the list only its table."""
        job = self.job_or_404(request, pk)
        if not may_read_runs(request):
            raise PermissionDenied
        context = self.job_context(request, job, _("Run log of {name}").format(name=job.name))
        context |= {"page": page_of_runs(job, request.GET), "never_ran": not job.last_status}
        part = "fragment" in request.GET
        template = "includes/runs.html" if part else "job/runs.html"
        return TemplateResponse(request, f"admin/scheduler/{template}", context)

    def clear_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        """Ask, then remove the ended runs of a job but for the newest of each outcome; the counters stay."""
        job = self.job_or_404(request, pk)
        if not (self.has_change_permission(request, job) and request.user.has_perm("scheduler.delete_runlog")):
            raise PermissionDenied
        if request.method != "POST":
            context = self.job_context(request, job, _("Clear the run log of {name}?").format(name=job.name))
            return TemplateResponse(request, "admin/scheduler/job/clear.html", context)
        pruned = control.clear_history(job.name)
        words = ngettext("%d run removed.", "%d runs removed.", pruned.total) % pruned.total
        if pruned.cursor is not None:
            words += " " + _("There are more: clear again to go on.")
        self.log_change(request, job, _("Cleared the run log.") + " " + words)
        self.message_user(request, words)
        return HttpResponseRedirect(reverse(f"{self.admin_site.name}:scheduler_job_page", args=[job.pk]))

    def job_context(self, request: HttpRequest, job: Job, title: str) -> dict[str, Any]:
        """Return what every page of a job needs."""
        may_change = self.has_change_permission(request, job)
        may_clear = may_change and request.user.has_perm("scheduler.delete_runlog")
        return page_context(self, request, title) | {
            "job": job,
            "busy": job.active_runs > 0,
            "buttons": row_buttons(
                job,
                self.admin_site.name,
                run=self.has_run_permission(request),
                pause=self.has_pause_permission(request),
            ),
            "may_read_runs": may_read_runs(request),
            "may_change": may_change,
            "may_clear": may_clear,
            "may_delete": self.has_delete_permission(request, job),
        }


def _state(job: Job, held: Group | None) -> dict[str, Any]:
    state = state_of(job, held)
    reason = look.why(job, held)
    return {
        "badge": look.job_badge(job, held),
        "reason": with_times(reason) if held else reason,
        "state": state.label,
        "stopped": state in look.STOPPED,
    }


def _next_start(job: Job, now: Any, held: Group | None) -> dict[str, Any]:
    at = look.next_start(job, held)
    if at is None or (job.active_runs and at <= now):
        return {"next_at": "", "next_away": ""}
    return {"next_at": instant(at, zone=zone_of(job, settings.TIME_ZONE)), "next_away": relative(at, now)}
