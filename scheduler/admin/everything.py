"""Stop everything, or a group, and the way back."""

from functools import partial
from typing import TYPE_CHECKING

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.translation import gettext as _

from scheduler.admin.context import now_of, page_context
from scheduler.admin.pauseform import PauseForm, pause_words
from scheduler.arguments import is_name
from scheduler.engine import control
from scheduler.models import EVERYTHING, Group, Job

if TYPE_CHECKING:
    from scheduler.admin.actions import JobActionsMixin as _ModelAdmin
else:
    _ModelAdmin = object


class EverythingMixin(_ModelAdmin):
    """Pauses that concern more than one job; the empty name of a group means everything."""

    def pause_all_view(self, request: HttpRequest) -> HttpResponse:
        """Pause everything, or the group that is named, after a reason and an end were asked for."""
        name = self._name(request)
        if not _is_known(name):
            return self._nothing_done(request, name)
        form = PauseForm(request.POST if request.method == "POST" else None, now=now_of(request))
        if not form.is_valid():
            title = _("Pause the group {name}").format(name=name) if name else _("Pause everything")
            context = page_context(self, request, title, form=form, group=name, next=self._list(), back=self._list())
            return TemplateResponse(request, "admin/scheduler/job/pause.html", context)
        until, reason = form.cleaned_data["ends_at"], form.cleaned_data["reason"]
        pause = control.pause_all if name == EVERYTHING else partial(control.pause_group, name)
        group = pause(until=until, reason=reason, actor=request.user.get_username())
        self._tell(request, group, pause_words(form))
        return HttpResponseRedirect(self._list())

    def resume_all_view(self, request: HttpRequest) -> HttpResponse:
        """End the pause of everything, or of a group."""
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        name = self._name(request)
        if not _is_known(name):
            return self._nothing_done(request, name)
        group = Group.objects.filter(name=name).first()
        if group is not None and (control.resume_all() if name == EVERYTHING else control.resume_group(name)):
            self._tell(request, group, _("Resumed."))
        return HttpResponseRedirect(self._list())

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

    def _list(self) -> str:
        return reverse(f"{self.admin_site.name}:scheduler_job_changelist")


def _is_known(name: str) -> bool:
    """Return whether there is such a group: everything always is."""
    if name == EVERYTHING:
        return True
    if not is_name(name):
        return False
    return Job.objects.filter(group=name).exists() or Group.objects.filter(name=name).exists()
