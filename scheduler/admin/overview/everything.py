"""Stop everything, or a group, and the way back."""

from collections.abc import Collection
from functools import partial
from typing import TYPE_CHECKING, Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.utils.translation import gettext as _

from scheduler.admin.allowed import jobs_for, jobs_of_group, may_see_list, sees_every_job
from scheduler.admin.jobs.actions import JobActionsMixin
from scheduler.admin.jobs.confirm import came_from
from scheduler.admin.jobs.pause_form import PauseForm, pause_words
from scheduler.admin.names import address_of
from scheduler.admin.page_context import READS, actor_of, led_back, now_of, page_context, paused_of
from scheduler.admin.served_api import served_api
from scheduler.conf import conf
from scheduler.engine import control
from scheduler.models import EVERYTHING, ApiToken, Group, Instance, Job, Notice, RunLog, in_groups

if TYPE_CHECKING:
    _ModelAdmin = JobActionsMixin
else:
    _ModelAdmin = object


class EverythingMixin(_ModelAdmin):
    """Pauses that concern more than one job; the empty name of a group means everything."""

    def pause_all_view(self, request: HttpRequest) -> HttpResponse:
        """Pause everything, or the group that is named, after a reason and an end were asked for."""
        name = self._name(request)
        if not _is_known(name):
            return self._nothing_done(request, name)
        if not self.may_pause_group(request, name):
            raise PermissionDenied
        form = PauseForm(request.POST if request.method == "POST" else None, now=now_of(request))
        if not form.is_valid():
            title = _("Pause the group {name}").format(name=name) if name else _("Pause everything")
            origin = came_from(request) or self._list()
            context = page_context(self, request, title, form=form, group=name, next=origin, back=origin)
            return TemplateResponse(request, "admin/scheduler/job/pause.html", context)
        until, reason = form.cleaned_data["ends_at"], form.cleaned_data["reason"]
        pause = control.pause_all if name == EVERYTHING else partial(control.pause_group, name)
        group = pause(until=until, reason=reason, actor=actor_of(request))
        self._tell(request, group, pause_words(form))
        return self._back_to_list(request)

    def resume_all_view(self, request: HttpRequest) -> HttpResponse:
        """End the pause of everything, or of a group."""
        if request.method in READS:
            return led_back(self, request, self._list())
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        name = self._name(request)
        if not _is_known(name):
            return self._nothing_done(request, name)
        if not self.may_pause_group(request, name):
            raise PermissionDenied
        group = Group.objects.filter(name=name).first()
        resume = control.resume_all if name == EVERYTHING else partial(control.resume_group, name)
        if group is not None and resume(actor=actor_of(request)):
            self._tell(request, group, _("Resumed."))
        return self._back_to_list(request)

    def may_pause_group(self, request: HttpRequest, name: str) -> bool:
        """Whether the user may see and pause each job that a pause of the group, or of everything, would stop."""
        if not (self.has_view_permission(request) and self.has_pause_permission(request)):
            return False
        jobs = jobs_of_group(name)
        if not sees_every_job(self.admin_site, request):
            seen = jobs_for(self.admin_site, request).values("pk")
            if jobs.exclude(pk__in=seen).exists():
                return False
        if type(self).has_pause_permission is JobActionsMixin.has_pause_permission:
            return True  # it says the same of every job: no need to read thousands
        return all(self.has_pause_permission(request, job) for job in jobs)

    def pausable_groups(self, request: HttpRequest, names: Collection[str]) -> set[str]:
        """Return those of some groups that `may_pause_group` allows, in a constant number of queries."""
        if not (self.has_view_permission(request) and self.has_pause_permission(request)):
            return set()
        refused: set[str] = set()
        if not sees_every_job(self.admin_site, request):
            seen = jobs_for(self.admin_site, request).values("pk")
            hidden = Job.objects.exclude(pk__in=seen).order_by().values_list("group", flat=True).distinct()
            refused = {name or conf.DEFAULT_GROUP for name in hidden}
        if type(self).has_pause_permission is not JobActionsMixin.has_pause_permission:
            jobs = Job.objects.filter(in_groups(names)).order_by()
            refused |= {job.in_group for job in jobs if not self.has_pause_permission(request, job)}
        return set(names) - refused

    def pauses_allowed(self, request: HttpRequest) -> dict[str, Any]:
        """Return what the list has buttons for: other lists, the pause of what it is filtered by, ends of pauses."""
        return {
            "may_read_runs": may_see_list(self.admin_site, request, RunLog),
            "may_see_instances": may_see_list(self.admin_site, request, Instance),
            "may_see_notices": may_see_list(self.admin_site, request, Notice),
            "may_see_tokens": may_see_list(self.admin_site, request, ApiToken),
            "api": served_api(request),
            "may_pause": self.may_pause_group(request, request.GET.get("group") or EVERYTHING),
            "may_resume": [name for name in paused_of(request) if self.may_pause_group(request, name)],
        }

    def _name(self, request: HttpRequest) -> str:
        """Return the name of the group that is asked for; that of everything when none is."""
        if not self.has_pause_permission(request):
            raise PermissionDenied
        return request.POST.get("group") or request.GET.get("group") or EVERYTHING

    def _nothing_done(self, request: HttpRequest, name: str) -> HttpResponse:
        """Say so: who meant a group that is gone meant it, and not everything."""
        words = _("There is no group {name} any more; nothing was changed.").format(name=f"“{name[:100]}”")
        self.message_user(request, words, messages.ERROR)
        return HttpResponseRedirect(self._list())

    def _tell(self, request: HttpRequest, group: Group, done: str) -> None:
        name = _("Group {name}").format(name=group.name) if group.name else _("Everything")
        self.log_change(request, group, done)  # type: ignore[arg-type]
        self.message_user(request, f"{name}: {done}")

    def _back_to_list(self, request: HttpRequest) -> HttpResponse:
        """Return to where the button was, if that is a page of this site, else to the list of jobs."""
        return HttpResponseRedirect(came_from(request) or self._list())

    def _list(self) -> str:
        return address_of(self.admin_site.name, "job_changelist")


def _is_known(name: str) -> bool:
    """Return whether there is such a group: everything always is."""
    return name == EVERYTHING or name in control.known_groups()
