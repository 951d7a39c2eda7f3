"""What people do with jobs: run now, pause, resume, reset, back to code. One by one and in bulk, always by POST."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed, HttpResponseRedirect
from django.shortcuts import get_object_or_404
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from scheduler.admin.allowed import jobs_found
from scheduler.admin.jobs.confirm import CONFIRMED, came_from, pause_page, run_page, wanting_confirmation
from scheduler.admin.jobs.pause_form import PauseForm, pause_words
from scheduler.admin.jobs.row_buttons import in_a_line, job_buttons, link_button, with_menu
from scheduler.admin.log_entries import log_changes
from scheduler.admin.names import address_of, right_named
from scheduler.admin.page_context import READS, actor_of, led_back, now_of
from scheduler.admin.request_values import keep_numbers_ticked
from scheduler.admin.times import in_zone
from scheduler.engine import control
from scheduler.engine.db.fast_read import is_of_whole_rows, read_rows
from scheduler.exceptions import Refused, SchedulerError
from scheduler.models import Job, Trigger

if TYPE_CHECKING:
    _ModelAdmin = admin.ModelAdmin[Job]
else:
    _ModelAdmin = object

MOST_REFUSALS = 10
DOUBLE_CLICK = timedelta(seconds=10)
"""A further wish of the same person within it is the same wish: browsers show the answer to the last click only."""


@dataclass(frozen=True, slots=True)
class Unchanged:
    """What an act returns that had nothing to do: what to tell, and no entry in the log."""

    words: str


Act = Callable[[Job], object]
ActOnAll = Callable[[list[Job]], tuple[list[Job], list[Refused]]]


class JobActionsMixin(_ModelAdmin):
    """The actions of jobs. The scheduler runs what it is asked to run, never the request."""

    actions = ("run_now", "pause", "resume", "reset")

    if TYPE_CHECKING:

        def may_run_with(self, request: HttpRequest, job: Job) -> bool:
            """See RunWithMixin."""

    def has_run_permission(self, request: HttpRequest, obj: Job | None = None) -> bool:
        """Whether the user may run a job and cancel its runs; without a job, whether there may be such jobs."""
        return request.user.has_perm(right_named("run_job"))

    def has_pause_permission(self, request: HttpRequest, obj: Job | None = None) -> bool:
        """Whether the user may pause, resume and reset a job; without a job, whether there may be such jobs."""
        return request.user.has_perm(right_named("pause_job"))

    def buttons_of(self, request: HttpRequest, job: Job) -> SafeString:
        """Return the buttons of a job whose POST is allowed to the user."""
        return in_a_line(self._buttons(request, job))

    def row_buttons_of(self, request: HttpRequest, job: Job) -> SafeString:
        """Return the button that is needed most, and in a menu whatever else the user may do with a job."""
        buttons, site = self._buttons(request, job), self.admin_site.name
        if self.may_run_with(request, job):
            buttons.append(link_button(job, site, "run_with", _("Run with arguments…"), "▶"))
        if buttons and self.has_change_permission(request, job):
            buttons.append(link_button(job, site, "change", _("Change"), "✎"))
        return with_menu(job, buttons)

    def _buttons(self, request: HttpRequest, job: Job) -> list[SafeString]:
        run, pause = self.has_run_permission(request, job), self.has_pause_permission(request, job)
        return job_buttons(job, self.admin_site.name, run=run, pause=pause)

    def message_user(self, request: HttpRequest, message: Any, *args: Any, **more: Any) -> None:
        """As Django's, with instants that follow the zone of the page."""
        super().message_user(request, in_zone(message), *args, **more)

    def response_action(
        self, request: HttpRequest, queryset: QuerySet[Job], *args: Any, **more: Any
    ) -> HttpResponse | None:
        """As Django's, which takes every ticked box for the number of a job."""
        keep_numbers_ticked(request)
        return super().response_action(request, queryset, *args, **more)

    @admin.action(description=gettext_lazy("Run now"), permissions=["run"])
    def run_now(self, request: HttpRequest, jobs: QuerySet[Job]) -> HttpResponse | None:
        """Hand the jobs to the running scheduler; where one of them wants to be confirmed, ask first about all."""
        cautious = [] if CONFIRMED in request.POST else wanting_confirmation(jobs)
        if cautious:
            return run_page(self, request, cautious, jobs, bulk=True)
        self.act(request, jobs, "run", _("Asked to run now."), _run(request))
        return None

    @admin.action(description=gettext_lazy("Pause…"), permissions=["pause"])
    def pause(self, request: HttpRequest, jobs: QuerySet[Job]) -> HttpResponse | None:
        """Ask for a reason and an end, then pause the jobs."""
        form = PauseForm(request.POST if CONFIRMED in request.POST else None, now=now_of(request))
        if form.is_valid():
            self.act(request, jobs, "pause", pause_words(form), _nothing, _pause(request, form))
            return None
        return pause_page(self, request, list(jobs), form, bulk=True)

    @admin.action(description=gettext_lazy("Resume"), permissions=["pause"])
    def resume(self, request: HttpRequest, jobs: QuerySet[Job]) -> None:
        """Resume the jobs."""
        self.act(request, jobs, "pause", _("Resumed."), _nothing, _resume_all(request))

    @admin.action(description=gettext_lazy("Reset (let broken jobs run again)"), permissions=["pause"])
    def reset(self, request: HttpRequest, jobs: QuerySet[Job]) -> None:
        """Reset broken jobs."""
        self.act(request, jobs, "pause", _("Reset."), _nothing, _reset_all(request))

    def run_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        """Run one job now; one that wants to be confirmed after it was."""
        if request.method == "POST" and CONFIRMED not in request.POST:
            job = self.job_or_404(request, pk, "run")
            jobs = self.get_queryset(request).filter(pk=job.pk)
            if cautious := wanting_confirmation(jobs):
                return run_page(self, request, cautious, jobs, bulk=False)
        return self._one(request, pk, "run", _("Asked to run now."), _run(request))

    def resume_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        """Resume one job."""
        return self._one(request, pk, "pause", _("Resumed."), _resume(request))

    def reset_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        """Reset one job."""
        return self._one(request, pk, "pause", _("Reset."), _reset(request))

    def follow_code_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        """Drop what people changed of one job."""
        actor = actor_of(request)
        return self._one(
            request, pk, "change", _("Back to code."), lambda job: control.follow_code(job.name, actor=actor)
        )

    def pause_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        """Pause one job, with a reason and an end."""
        job = self.job_or_404(request, pk, "pause")
        form = PauseForm(request.POST if request.method == "POST" else None, now=now_of(request))
        if not form.is_valid():
            return pause_page(self, request, [job], form, bulk=False)
        self.act(request, [job], "pause", pause_words(form), _nothing, _pause(request, form))
        return self._back(request, job)

    def act(
        self,
        request: HttpRequest,
        jobs: Iterable[Job],
        right: str,
        done: str,
        act: Act,
        act_on_all: ActOnAll | None = None,
    ) -> int:
        """Do it for each job, or for all at once; a refusal is told and stops no other. Every change is in the log."""
        changed: list[Job] = []
        refusals: list[str] = []
        unchanged: list[str] = []
        for job in _read(jobs):
            try:
                self._ask(request, job, right)
                answer = act(job)
            except SchedulerError as refusal:
                refusals.append(str(refusal))
            else:
                if isinstance(answer, Unchanged):
                    unchanged.append(answer.words)
                else:
                    changed.append(job)
        if act_on_all is not None and changed:
            changed, refused = act_on_all(changed)
            refusals += map(str, refused)
        self._log(request, changed, done)
        self._tell_some(request, refusals, messages.ERROR)
        self._tell_some(request, unchanged, messages.INFO)
        if not (changed or refusals or unchanged):
            self.message_user(request, _("Nothing was changed."), messages.WARNING)
        if changed:
            self.message_user(request, f"{_names([job.shown_name for job in changed])}: {done}", messages.SUCCESS)
        return len(changed)

    def _log(self, request: HttpRequest, jobs: list[Job], done: str) -> None:
        """Write all lines of the log at once, unless the project writes its own."""
        if type(self).log_change is admin.ModelAdmin.log_change and jobs:
            log_changes(request.user.pk, jobs, done)
            return
        for job in jobs:
            self.log_change(request, job, done)

    def _tell_some(self, request: HttpRequest, words: list[str], level: int) -> None:
        for text in words[:MOST_REFUSALS]:
            self.message_user(request, text, level)
        if more := len(words[MOST_REFUSALS:]):
            text = ngettext("%d more such job.", "%d more such jobs.", more) % more
            self.message_user(request, text, level)

    def job_or_404(self, request: HttpRequest, pk: int, right: str = "view") -> Job:
        """Return a job that the user may see, or raise Http404; PermissionDenied without the right to it."""
        if not (self.has_view_permission(request) and self._has(request, right)):
            raise PermissionDenied
        job = get_object_or_404(jobs_found(self.admin_site, request), pk=pk)
        if not (self.has_view_permission(request, job) and self._has(request, right, job)):
            raise PermissionDenied
        return job

    def _has(self, request: HttpRequest, right: str, *job: Job) -> bool:
        return bool(getattr(self, f"has_{right}_permission")(request, *job))

    def _ask(self, request: HttpRequest, job: Job, right: str) -> None:
        if not self._has(request, right, job):
            raise SchedulerError(_("You may not do this with {name}.").format(name=f"“{job.shown_name}”"))

    def _one(self, request: HttpRequest, pk: int, right: str, done: str, act: Act) -> HttpResponse:
        if request.method in READS:
            job = self.job_or_404(request, pk)
            return led_back(self, request, self._page_of(job))
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        job = self.job_or_404(request, pk, right)
        self.act(request, [job], right, done, act)
        return self._back(request, job)

    def _back(self, request: HttpRequest, job: Job) -> HttpResponse:
        """Return to where the button was, if that is a page of this site, else to the page of the job."""
        return HttpResponseRedirect(came_from(request) or self._page_of(job))

    def _page_of(self, job: Job) -> str:
        return address_of(self.admin_site.name, "job_page", job.pk)


def _names(names: list[str]) -> str:
    if len(names) <= 3:
        return ", ".join(f"“{name}”" for name in names)  # in quotes, or Django would write its first letter large
    return ngettext("%d job", "%d jobs", len(names)) % len(names)


def _run(request: HttpRequest) -> Act:
    def run(job: Job) -> object:
        try:
            return control.run_now(job.name, actor=actor_of(request))
        except Refused as refusal:
            if refusal.code == "busy" and (mine := _asked_just_now(request, job)):
                return Unchanged(
                    _("{name}: Asked to run now, as run {run}.").format(name=f"“{job.shown_name}”", run=mine)
                )
            raise

    return run


def _asked_just_now(request: HttpRequest, job: Job) -> int | None:
    """Return the run of the job that the same person asked for a moment ago."""
    since = now_of(request) - DOUBLE_CLICK
    asked = job.runs.filter(
        scheduled_for__gte=since, trigger=Trigger.MANUAL, actor=actor_of(request), kwargs__isnull=True
    )
    return asked.order_by("-scheduled_for").values_list("pk", flat=True).first()


def _resume(request: HttpRequest) -> Act:
    def resume(job: Job) -> object:
        if not (job.paused_at or job.broken_at):
            return Unchanged(_("{name} is not paused.").format(name=f"“{job.shown_name}”"))
        return control.resume_job(job.name, actor=actor_of(request))

    return resume


def _reset(request: HttpRequest) -> Act:
    return lambda job: control.reset_job(job.name, actor=actor_of(request))


def _pause(request: HttpRequest, form: PauseForm) -> ActOnAll:
    wanted: dict[str, Any] = {"until": form.cleaned_data["ends_at"], "reason": form.cleaned_data["reason"]}
    return lambda jobs: (control.pause_jobs(jobs, actor=actor_of(request), **wanted), [])


def _resume_all(request: HttpRequest) -> ActOnAll:
    return lambda jobs: control.resume_jobs(jobs, actor=actor_of(request))


def _reset_all(request: HttpRequest) -> ActOnAll:
    return lambda jobs: control.reset_jobs(jobs, actor=actor_of(request))


def _read(jobs: Iterable[Job]) -> Iterable[Job]:
    """Return the jobs, read at once where that is possible, whatever the list defers: there may be thousands."""
    whole = jobs.defer(None) if isinstance(jobs, QuerySet) else None
    return read_rows(whole) if whole is not None and is_of_whole_rows(whole) else jobs


def _nothing(job: Job) -> None:
    """For what is done for all at once."""
