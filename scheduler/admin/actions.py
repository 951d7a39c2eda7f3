"""What people do with jobs: run now, pause, resume, reset, back to code. One by one and in bulk, always by POST."""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed, HttpResponseRedirect
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from scheduler.admin.asked import whole_number
from scheduler.admin.confirm import CONFIRMED, came_from, pause_page, run_page, wanting_confirmation
from scheduler.admin.context import now_of
from scheduler.admin.pauseform import PauseForm, pause_words
from scheduler.engine import control
from scheduler.exceptions import SchedulerError
from scheduler.models import Job

if TYPE_CHECKING:
    _ModelAdmin = admin.ModelAdmin[Job]
else:
    _ModelAdmin = object

MOST_REFUSALS = 10
Act = Callable[[Job], object]


class JobActionsMixin(_ModelAdmin):
    """The actions of jobs. The scheduler runs what it is asked to run, never the request."""

    actions = ("run_now", "pause", "resume", "reset")

    def has_run_permission(self, request: HttpRequest) -> bool:
        """Whether the user may run jobs and cancel runs."""
        return request.user.has_perm("scheduler.run_job")

    def has_pause_permission(self, request: HttpRequest) -> bool:
        """Whether the user may pause, resume and reset jobs."""
        return request.user.has_perm("scheduler.pause_job")

    def response_action(
        self, request: HttpRequest, queryset: QuerySet[Job], *args: Any, **more: Any
    ) -> HttpResponse | None:
        """As Django's, which takes every ticked box for the number of a job."""
        sent = request.POST.copy()
        ticked = [one for one in sent.getlist(ACTION_CHECKBOX_NAME) if whole_number(one) is not None]
        sent.setlist(ACTION_CHECKBOX_NAME, ticked)
        request.POST = sent  # type: ignore[assignment]
        return super().response_action(request, queryset, *args, **more)

    @admin.action(description=gettext_lazy("Run now"), permissions=["run"])
    def run_now(self, request: HttpRequest, jobs: QuerySet[Job]) -> HttpResponse | None:
        """Hand the jobs to the running scheduler; where one of them wants to be confirmed, ask first about all."""
        cautious = [] if CONFIRMED in request.POST else wanting_confirmation(jobs)
        if cautious:
            return run_page(self, request, cautious, jobs, bulk=True)
        self.act(request, jobs, _("Asked to run now."), _run(request))
        return None

    @admin.action(description=gettext_lazy("Pause…"), permissions=["pause"])
    def pause(self, request: HttpRequest, jobs: QuerySet[Job]) -> HttpResponse | None:
        """Ask for a reason and an end, then pause the jobs."""
        form = PauseForm(request.POST if CONFIRMED in request.POST else None, now=now_of(request))
        if form.is_valid():
            self.act(request, jobs, pause_words(form), _pause(request, form))
            return None
        return pause_page(self, request, list(jobs), form, bulk=True)

    @admin.action(description=gettext_lazy("Resume"), permissions=["pause"])
    def resume(self, request: HttpRequest, jobs: QuerySet[Job]) -> None:
        """Resume the jobs."""
        self.act(request, jobs, _("Resumed."), _resume(request))

    @admin.action(description=gettext_lazy("Reset (let broken jobs run again)"), permissions=["pause"])
    def reset(self, request: HttpRequest, jobs: QuerySet[Job]) -> None:
        """Reset broken jobs."""
        self.act(request, jobs, _("Reset."), lambda job: control.reset_job(job.name))

    def run_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        """Run one job now; one that wants to be confirmed after it was."""
        jobs = Job.objects.filter(pk=pk)
        asks = request.method == "POST" and CONFIRMED not in request.POST and self.has_run_permission(request)
        cautious = wanting_confirmation(jobs) if asks else []
        if cautious:
            self.job_or_404(request, pk)
            return run_page(self, request, cautious, jobs, bulk=False)
        return self._one(request, pk, "run", _("Asked to run now."), _run(request))

    def resume_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        """Resume one job."""
        return self._one(request, pk, "pause", _("Resumed."), _resume(request))

    def reset_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        """Reset one job."""
        return self._one(request, pk, "pause", _("Reset."), lambda job: control.reset_job(job.name))

    def follow_code_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        """Drop what people changed of one job."""
        return self._one(request, pk, "change", _("Back to code."), lambda job: control.follow_code(job.name))

    def pause_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        """Pause one job, with a reason and an end."""
        if not self.has_pause_permission(request):
            raise PermissionDenied
        job = self.job_or_404(request, pk)
        form = PauseForm(request.POST if request.method == "POST" else None, now=now_of(request))
        if not form.is_valid():
            return pause_page(self, request, [job], form, bulk=False)
        self.act(request, [job], pause_words(form), _pause(request, form))
        return self._back(request, job)

    def act(self, request: HttpRequest, jobs: Iterable[Job], done: str, act: Act) -> int:
        """Do it for each job; a refusal is told and stops no other. Every change leaves an entry in the history."""
        changed, refusals = [], []
        for job in jobs:
            try:
                act(job)
            except SchedulerError as refusal:
                refusals.append(str(refusal))
            else:
                self.log_change(request, job, done)
                changed.append(job.name)
        for words in refusals[:MOST_REFUSALS]:
            self.message_user(request, words, messages.ERROR)
        if len(refusals) > MOST_REFUSALS:
            more = len(refusals) - MOST_REFUSALS
            self.message_user(request, ngettext("%d more refusal.", "%d more refusals.", more) % more, messages.ERROR)
        if changed:
            self.message_user(request, f"{_names(changed)}: {done}", messages.SUCCESS)
        return len(changed)

    def job_or_404(self, request: HttpRequest, pk: int) -> Job:
        """Return the job, or raise Http404; PermissionDenied for who may not even see it."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        return get_object_or_404(Job, pk=pk)

    def _one(self, request: HttpRequest, pk: int, right: str, done: str, act: Act) -> HttpResponse:
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        if not getattr(self, f"has_{right}_permission")(request):
            raise PermissionDenied
        job = self.job_or_404(request, pk)
        self.act(request, [job], done, act)
        return self._back(request, job)

    def _back(self, request: HttpRequest, job: Job) -> HttpResponse:
        """Return to where the button was, if that is a page of this site, else to the page of the job."""
        page = reverse(f"{self.admin_site.name}:scheduler_job_page", args=[job.pk])
        return HttpResponseRedirect(came_from(request) or page)


def _names(names: list[str]) -> str:
    if len(names) <= 3:
        return ", ".join(f"“{name}”" for name in names)  # in quotes, or Django would write its first letter large
    return ngettext("%d job", "%d jobs", len(names)) % len(names)


def _actor(request: HttpRequest) -> str:
    return request.user.get_username()


def _run(request: HttpRequest) -> Act:
    return lambda job: control.run_now(job.name, actor=_actor(request))


def _resume(request: HttpRequest) -> Act:
    return lambda job: control.resume_job(job.name, actor=_actor(request))


def _pause(request: HttpRequest, form: PauseForm) -> Act:
    wanted: dict[str, Any] = {"until": form.cleaned_data["ends_at"], "reason": form.cleaned_data["reason"]}
    return lambda job: control.pause_job(job.name, actor=_actor(request), **wanted)
