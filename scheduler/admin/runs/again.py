"""What people do with a run: cancel it, or run its job again with the same keyword arguments."""

from typing import TYPE_CHECKING, Any, cast

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed, HttpResponseRedirect
from django.utils.translation import gettext as _

from scheduler.admin.allowed import jobs_for, may_change, may_run
from scheduler.admin.jobs.confirm import CONFIRMED, run_page, wanting_confirmation
from scheduler.admin.names import address_of
from scheduler.admin.page_context import READS, actor_of, led_back
from scheduler.engine import control
from scheduler.engine.control import names_no_user
from scheduler.engine.views.enqueued import may_be_enqueued_again
from scheduler.exceptions import SchedulerError
from scheduler.models import Job, RunLog, Status
from scheduler.models.carriers import is_carrier

if TYPE_CHECKING:
    _ModelAdmin = admin.ModelAdmin[RunLog]
else:
    _ModelAdmin = object


class RunActionsMixin(_ModelAdmin):
    """The buttons on the page of a run, always by POST."""

    if TYPE_CHECKING:

        def run_or_404(self, request: HttpRequest, pk: int) -> RunLog:
            """See RunLogAdminMixin."""

        def enqueue(self, request: HttpRequest, runs: QuerySet[RunLog], jobs: list[Job]) -> None:
            """See EnqueueAgainMixin."""

    def may_cancel(self, request: HttpRequest, run: RunLog) -> bool:
        """Return whether the run can be cancelled still, by this person."""
        is_open = run.status == Status.PENDING or run.is_living
        return is_open and run.stop_requested_at is None and may_run(self.admin_site, request, run.job)

    def may_run_again(self, request: HttpRequest, run: RunLog) -> bool:
        """Return whether there is something to run again, by this person: keyword arguments that its job does not
        have take the permission to change it, too."""
        if is_carrier(run.job):
            return may_be_enqueued_again(run) and may_run(self.admin_site, request, run.job)
        if run.status == Status.PENDING or run.is_living or names_no_user(run.job, run.kwargs):
            return False
        return self._may_run_as(request, run)

    def cancel_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        """Cancel a run that waits, or ask one that runs to stop."""
        address = address_of(self.admin_site.name, "runlog_change", pk)
        if request.method in READS:
            return led_back(self, request, address)
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        if not may_run(self.admin_site, request, self.run_or_404(request, pk).job):
            raise PermissionDenied
        try:
            run = control.cancel_run(pk, actor=actor_of(request))
        except SchedulerError as refusal:
            self.message_user(request, str(refusal), messages.ERROR)
        else:
            words = _("Run {number} was asked to stop.") if run.is_living else _("Run {number} was cancelled.")
            self.log_change(request, cast(Any, run.job), _("Cancelled run {number}.").format(number=pk))
            self.message_user(request, words.format(number=pk))
        return HttpResponseRedirect(address)

    def again_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        """Run the job of a run now, with the keyword arguments that the run had; where it wants that, after a
        question."""
        address = address_of(self.admin_site.name, "runlog_change", pk)
        if request.method in READS:
            return led_back(self, request, address)
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        run = self.run_or_404(request, pk)
        if is_carrier(run.job):
            return self._enqueue_again(request, run)
        if not self._may_run_as(request, run):
            raise PermissionDenied
        if CONFIRMED not in request.POST:
            jobs = jobs_for(self.admin_site, request).filter(pk=run.job_id)
            if cautious := wanting_confirmation(jobs):
                return run_page(self, request, cautious, jobs, bulk=False)
        try:
            new = control.run_now(run.job.name, kwargs=run.kwargs, actor=actor_of(request))
        except SchedulerError as refusal:
            self.message_user(request, str(refusal), messages.ERROR)
            return HttpResponseRedirect(address)
        words = _("Asked to run again, as run {new}, with the keyword arguments of run {number}.")
        words = words.format(new=new.pk, number=pk)
        self.log_change(request, cast(Any, run.job), words)
        self.message_user(request, words, messages.SUCCESS)
        return HttpResponseRedirect(address_of(self.admin_site.name, "runlog_change", new.pk))

    def _enqueue_again(self, request: HttpRequest, run: RunLog) -> HttpResponse:
        if not may_run(self.admin_site, request, run.job):
            raise PermissionDenied
        self.enqueue(request, RunLog.objects.filter(pk=run.pk), [run.job])
        return HttpResponseRedirect(address_of(self.admin_site.name, "runlog_change", run.pk))

    def _may_run_as(self, request: HttpRequest, run: RunLog) -> bool:
        site = self.admin_site
        return may_run(site, request, run.job) and (run.kwargs is None or may_change(site, request, run.job))
