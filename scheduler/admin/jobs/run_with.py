"""Run now with arguments of its own: a page with a form, from the page of a job."""

from typing import TYPE_CHECKING

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.utils.translation import gettext as _

from scheduler.admin.allowed import may_read_runs
from scheduler.admin.jobs.arguments_form import ArgumentsForm, takes_arguments
from scheduler.admin.names import address_of
from scheduler.admin.page_context import actor_of, page_context
from scheduler.engine import control
from scheduler.exceptions import InvalidOption, SchedulerError
from scheduler.models import Job, JobState
from scheduler.models.carriers import is_carrier
from scheduler.registry import registry

if TYPE_CHECKING:
    from scheduler.admin.jobs.actions import JobActionsMixin as _ModelAdmin
else:
    _ModelAdmin = object


class RunWithMixin(_ModelAdmin):
    """One run of a job with other keyword arguments than those of the job."""

    def may_run_with(self, request: HttpRequest, job: Job) -> bool:
        """Return whether the person may choose the arguments of a run: that takes the right to run and to change."""
        if not (self.has_run_permission(request, job) and self.has_change_permission(request, job)):
            return False
        task = registry.find(job.task)
        is_able = task is not None and job.job_state not in (JobState.ORPHANED, JobState.INVALID)
        return is_able and not is_carrier(job) and task is not None and takes_arguments(task)

    def run_with_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        """Ask for the arguments, then promise a run with them; what is wrong is said at the field."""
        job = self.job_or_404(request, pk, "run")
        if not self.has_change_permission(request, job):
            raise PermissionDenied
        page = address_of(self.admin_site.name, "job_page", job.pk)
        task = registry.find(job.task)
        if task is None or not self.may_run_with(request, job):
            words = _("{name} cannot be run with other arguments here.").format(name=f"“{job.name}”")
            self.message_user(request, words, messages.ERROR)
            return HttpResponseRedirect(page)
        form = ArgumentsForm(task, job.kwargs, request.POST if request.method == "POST" else None)
        if form.is_valid() and (answer := self._run_with(request, job, form)):
            return answer
        title = _("Run with arguments: {name}").format(name=job.name)
        context = page_context(self, request, title, job=job, form=form, confirm=task.confirm, back=page)
        return TemplateResponse(request, "admin/scheduler/job/run_with.html", context)

    def _run_with(self, request: HttpRequest, job: Job, form: ArgumentsForm) -> HttpResponse | None:
        """Return the way to the run; None where the form says what is wrong."""
        try:
            run = control.run_now(job.name, kwargs=form.kwargs, actor=actor_of(request))
        except (InvalidOption, SchedulerError) as error:
            form.add_error(None, str(error))
            return None
        words = _("Asked to run now with arguments, as run {run}.").format(run=run.pk)
        self.log_change(request, job, words)
        self.message_user(request, f"“{job.name}”: {words}", messages.SUCCESS)
        reads = may_read_runs(self.admin_site, request)
        address = address_of(self.admin_site.name, *(("runlog_change", run.pk) if reads else ("job_page", job.pk)))
        return HttpResponseRedirect(address)
