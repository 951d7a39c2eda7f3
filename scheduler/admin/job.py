"""Jobs in the admin: list, form, and the actions run now, pause, resume and reset."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext

from scheduler.admin.form import JobForm
from scheduler.engine import control
from scheduler.exceptions import SchedulerError
from scheduler.models import UNPLANNED, Job, JobState
from scheduler.models.fields import Unreadable

if TYPE_CHECKING:
    _ModelAdmin = admin.ModelAdmin[Job]
else:
    _ModelAdmin = admin.ModelAdmin


ICONS = {
    JobState.SCHEDULED: "🕒",
    JobState.RUNNING: "▶",
    JobState.PAUSED: "⏸",
    JobState.BROKEN: "⛔",
    JobState.DISABLED: "○",
    JobState.FINISHED: "✓",
    JobState.ORPHANED: "?",
    JobState.INVALID: "⚠",
}


@admin.register(Job)
class JobAdmin(_ModelAdmin):
    """The jobs: how they stand, when they run, and what may be done with them."""

    form = JobForm
    list_display = ["name", "state_word", "schedule_words", "next_start", "last_result", "successes", "failures"]
    list_filter = ["enabled", "last_status", "task"]
    search_fields = ["name", "task", "description"]
    show_full_result_count = False
    actions = ["run_now", "pause", "resume", "reset"]
    readonly_fields = [
        "state_word", "next_start", "next_run_at", "last_result", "last_run_at", "last_success_at", "problem", "source",
        "overridden_fields", "consecutive_failures", "successes", "failures", "timeouts", "losses", "skips", "misses",
        "paused_at", "paused_until", "paused_by", "pause_reason", "broken_at",
    ]  # fmt: skip

    @admin.display(description=_("state"))
    def state_word(self, job: Job) -> str:
        """The state as icon and word."""
        state = job.job_state
        return format_html('<span title="{}">{} {}</span>', job.problem or state.label, ICONS[state], state.label)

    @admin.display(description=_("schedule"))
    def schedule_words(self, job: Job) -> str:
        """The schedule in words."""
        if isinstance(job.schedule, Unreadable):
            return job.schedule.error
        return str(job.schedule.describe())

    @admin.display(description=_("next run"), ordering="next_start_at")
    def next_start(self, job: Job) -> Any:
        """When the job starts next."""
        return job.next_run_at if job.next_start_at in (None, UNPLANNED) else job.next_start_at

    @admin.display(description=_("last result"), ordering="last_finished_at")
    def last_result(self, job: Job) -> str:
        """How the last run ended, and when."""
        return f"{job.last_status} {job.last_finished_at:%Y-%m-%d %H:%M:%S} UTC" if job.last_finished_at else ""

    def get_readonly_fields(self, request: HttpRequest, obj: Job | None = None) -> Any:
        """A name never changes: it is what code and people know the job by."""
        return [*self.readonly_fields, "name"] if obj else self.readonly_fields

    def save_model(self, request: HttpRequest, obj: Job, form: Any, change: bool) -> None:
        """Write what the person changed, and nothing else."""
        if not change:
            super().save_model(request, obj, form, change)
            return
        control.write_definition(obj.name, {name: form.cleaned_data[name] for name in form.changed_data})

    def has_delete_permission(self, request: HttpRequest, obj: Job | None = None) -> bool:
        """A job that the code defines would come back at the next start."""
        owned = obj is not None and bool(obj.source) and obj.orphaned_at is None
        return not owned and super().has_delete_permission(request, obj)

    def has_run_permission(self, request: HttpRequest) -> bool:
        """Whether the user may run jobs."""
        return request.user.has_perm("scheduler.run_job")

    def has_pause_permission(self, request: HttpRequest) -> bool:
        """Whether the user may pause, resume and reset jobs."""
        return request.user.has_perm("scheduler.pause_job")

    @admin.action(description=_("Run now"), permissions=["run"])
    def run_now(self, request: HttpRequest, jobs: QuerySet[Job]) -> None:
        """Hand the jobs to the running scheduler."""
        actor = request.user.get_username()
        self._each(request, jobs, lambda job: control.run_now(job.name, actor=actor))

    @admin.action(description=_("Pause"), permissions=["pause"])
    def pause(self, request: HttpRequest, jobs: QuerySet[Job]) -> None:
        """Pause the jobs until they are resumed."""
        actor = request.user.get_username()
        self._each(request, jobs, lambda job: control.pause_job(job.name, actor=actor))

    @admin.action(description=_("Resume"), permissions=["pause"])
    def resume(self, request: HttpRequest, jobs: QuerySet[Job]) -> None:
        """Resume the jobs."""
        actor = request.user.get_username()
        self._each(request, jobs, lambda job: control.resume_job(job.name, actor=actor))

    @admin.action(description=_("Reset (let a broken job run again)"), permissions=["pause"])
    def reset(self, request: HttpRequest, jobs: QuerySet[Job]) -> None:
        """Reset broken jobs."""
        self._each(request, jobs, lambda job: control.reset_job(job.name))

    def _each(self, request: HttpRequest, jobs: QuerySet[Job], act: Callable[[Job], Any]) -> None:
        """Do it for each job; a refusal is told and stops no other."""
        done = 0
        for job in jobs:
            try:
                act(job)
                done += 1
            except SchedulerError as refusal:
                self.message_user(request, str(refusal), messages.ERROR)
        if done:
            self.message_user(request, ngettext("Done for %d job.", "Done for %d jobs.", done) % done)
