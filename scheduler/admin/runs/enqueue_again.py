"""Enqueue again: tasks of Django that have ended, one or all of a filter, once more with the arguments they had."""

from typing import TYPE_CHECKING, Any, cast

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from scheduler.admin.allowed import may_run
from scheduler.admin.names import right_named
from scheduler.admin.page_context import actor_of, now_of
from scheduler.admin.request_values import keep_numbers_ticked
from scheduler.admin.runs.sent_once import sent_once
from scheduler.admin.viewable import hides_rows, only_viewable
from scheduler.engine import control
from scheduler.engine.views.enqueued import enqueued_jobs_of, why_none_again
from scheduler.exceptions import Refused
from scheduler.models import Job, RunLog

if TYPE_CHECKING:
    _ModelAdmin = admin.ModelAdmin[RunLog]
else:
    _ModelAdmin = object


class EnqueueAgainMixin(_ModelAdmin):
    """The action of the run log. Permissions are those of a run by hand, asked for each function."""

    actions: Any = ("enqueue_again",)

    def has_run_permission(self, request: HttpRequest) -> bool:
        """Whether there may be jobs that the user may run."""
        if not self.admin_site.is_registered(Job):
            return request.user.has_perm(right_named("run_job"))
        asked: Any = self.admin_site.get_model_admin(Job)
        return bool(asked.has_run_permission(request))

    def response_action(
        self, request: HttpRequest, queryset: QuerySet[RunLog], *args: Any, **more: Any
    ) -> HttpResponse | None:
        """As Django's, which takes every ticked box for the number of a run."""
        keep_numbers_ticked(request)
        return super().response_action(request, queryset, *args, **more)

    @admin.action(description=gettext_lazy("Enqueue again (tasks that have ended)"), permissions=["run"])
    def enqueue_again(self, request: HttpRequest, runs: QuerySet[RunLog]) -> None:
        """Enqueue the chosen tasks once more, those of functions that the user may run."""
        if hides_rows(self):
            runs = runs.filter(pk__in=[run.pk for run in only_viewable(self, request, runs)])
        chosen = enqueued_jobs_of(runs)
        allowed = [job for job in chosen if may_run(self.admin_site, request, job)]
        if allowed or not chosen:
            self.enqueue(request, runs, allowed)
        if refused := len(chosen) - len(allowed):
            words = ngettext("You may not run %d of the functions.", "You may not run %d of the functions.", refused)
            self.message_user(request, words % refused, messages.ERROR)

    def enqueue(self, request: HttpRequest, runs: QuerySet[RunLog], jobs: list[Job]) -> None:
        """Enqueue the tasks among some runs, of these jobs, once for each form, and say how many there were."""
        tasks = RunLog.objects.filter(pk__in=runs.order_by().values("pk"), job__in=[job.pk for job in jobs])

        def again() -> int:
            return control.enqueue_again(tasks, now_of(request), actor=actor_of(request)) if jobs else 0

        try:
            count, before = sent_once(request, again)
        except Refused:
            words = _("This form was sent before, and is being carried out. To send another one, load the page again.")
            self.message_user(request, words, messages.WARNING)
            return
        if before:
            self.message_user(request, _("This form was sent twice: its tasks are enqueued again once."))
            return
        if not count:
            words = _("Nothing was enqueued: {why}").format(why=why_none_again(runs.order_by()))
            self.message_user(request, words, messages.WARNING)
            return
        told = ngettext("%d task was enqueued again.", "%d tasks were enqueued again.", count) % count
        self.message_user(request, told, messages.SUCCESS)
        for job in jobs:
            self.log_change(request, cast(Any, job), told)
