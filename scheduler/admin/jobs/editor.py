"""The schedule editor: one form for every kind, its live preview, and the way into the database through control."""

from copy import copy
from typing import TYPE_CHECKING, Any

from django.contrib import admin, messages
from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseNotAllowed, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.utils.html import format_html
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from scheduler.admin.allowed import jobs_found
from scheduler.admin.jobs.form import PLAIN, PREVIEW, JobForm
from scheduler.admin.jobs.policy_fields import POLICY_FIELDS, PREFIX, initial_of_policy
from scheduler.admin.jobs.policy_words import words_of_group
from scheduler.admin.jobs.schedule_fields import SCHEDULE_FIELDS, zone_names
from scheduler.admin.names import address_of
from scheduler.admin.page_context import READS, actor_of, led_back, now_of
from scheduler.admin.request_values import whole_number
from scheduler.engine import control
from scheduler.exceptions import SchedulerError
from scheduler.models import Job
from scheduler.models.stored import Unreadable
from scheduler.policy import Policy
from scheduler.registry import Task

if TYPE_CHECKING:
    _ModelAdmin = admin.ModelAdmin[Job]
else:
    _ModelAdmin = object

MOST_NAMED = 100
FIRST = ("name", "task", "description", "enabled")
FOLDED = ("collapse", "sched-folded")
"""For Django, and for our script where a theme folds nothing."""


def _with_what_holds(label: Any, fields: list[str], policy: Policy | Unreadable) -> Any:
    """Return the heading of a group with what holds in words, so that it is seen although the group is folded."""
    options = [field.removeprefix(PREFIX) for field in fields]
    words = "" if isinstance(policy, Unreadable) else words_of_group(policy, options)
    return format_html('{} <span class="sched-holds">{}</span>', label, words) if words else label


class JobEditorMixin(_ModelAdmin):
    """Add, change and delete jobs."""

    form = JobForm
    fieldsets = (
        (None, {"fields": FIRST}),
        (gettext_lazy("Schedule"), {"fields": tuple(SCHEDULE_FIELDS), "classes": ("sched-editor",)}),
        (gettext_lazy("Call"), {"fields": tuple(column for column in PLAIN if column not in FIRST)}),
    )
    change_form_template = "admin/scheduler/job/change_form.html"

    def get_readonly_fields(self, request: HttpRequest, obj: Job | None = None) -> Any:
        """A name never changes: it is what code and people know the job by."""
        return ("name",) if obj else ()

    def get_fieldsets(self, request: HttpRequest, obj: Job | None = None) -> Any:
        """The policies last, by group, each with what holds; it is open when that is something else than the
        defaults."""
        told = initial_of_policy(obj.policy) if obj else {}
        policy = obj.policy if obj else Policy()
        policies = [
            (
                _with_what_holds(label, fields, policy),
                {"fields": fields, "classes": ("sched-policy", *(() if told.keys() & fields else FOLDED))},
            )
            for label, fields in POLICY_FIELDS
        ]
        return [*self.fieldsets, *policies]

    def changeform_view(
        self,
        request: HttpRequest,
        object_id: str | None = None,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> Any:
        """As Django's; who may only look is shown the page of the job, and a refusal stands above what was typed."""
        if object_id and self.has_view_permission(request):
            job = self._job(request, whole_number(unquote(object_id)))
            if job is None:
                raise Http404(_("There is no job {number}.").format(number=object_id))
            if not self.has_change_permission(request, job) and self.has_view_permission(request, job):
                if request.method not in READS:
                    raise PermissionDenied
                return HttpResponseRedirect(self._job_url(job.pk))
        context = {"zones": zone_names(), "preview_url": address_of(self.admin_site.name, "job_preview")}
        context |= extra_context or {}
        if request.method != "POST" or PREVIEW in request.POST:
            return super().changeform_view(request, object_id, form_url, context)
        try:
            request.scheduler_asked = self._ask_gate(request, object_id)  # type: ignore[attr-defined]
            with control.kept_still(whole_number(object_id or "")):
                return super().changeform_view(request, object_id, form_url, context)
        except SchedulerError as refusal:
            request.scheduler_refusal = refusal  # type: ignore[attr-defined]
            return super().changeform_view(request, object_id, form_url, context)

    def delete_view(self, request: HttpRequest, object_id: str, extra_context: dict[str, Any] | None = None) -> Any:
        """As Django's, which reads before it writes."""
        if request.method != "POST":
            return super().delete_view(request, object_id, extra_context)
        with control.kept_still(whole_number(object_id)):
            return super().delete_view(request, object_id, extra_context)

    def get_form(self, request: HttpRequest, obj: Job | None = None, change: bool = False, **options: Any) -> Any:
        """The form, which is told the time; one that was refused says why."""
        form: Any = super().get_form(request, obj, change, **options)
        form.now = now_of(request)
        form.refusal = getattr(request, "scheduler_refusal", None)
        return form

    def preview_view(self, request: HttpRequest) -> HttpResponse:
        """The preview of the form that was sent; writes nothing."""
        if request.method in READS:
            return led_back(self, request, address_of(self.admin_site.name, "job_changelist"))
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        job = self._job(request, whole_number(request.GET.get("job", "")))
        if job is not None and not self.has_view_or_change_permission(request, job):
            job = None
        if not (self.has_change_permission(request, job) or self.has_add_permission(request)):
            raise PermissionDenied
        sent = request.POST.copy()
        sent[PREVIEW] = "1"
        form = self.get_form(request, job)(sent, instance=job)
        request.current_app = self.admin_site.name
        context = {"preview": form.preview}
        return TemplateResponse(request, "admin/scheduler/includes/preview.html", context)

    def _ask_gate(self, request: HttpRequest, object_id: str | None) -> Task | None:
        """Ask the gate of a job that the form is about to start again, before anything is locked: it may take time."""
        job = self._job(request, whole_number(object_id)) if object_id else Job(enabled=False)
        if job is None:
            return None
        if not (self.has_change_permission(request, job) if object_id else self.has_add_permission(request)):
            return None
        stored = copy(job)  # to validate a form is to write what was sent into its job
        form_class = self.get_form(request, job if object_id else None, change=bool(object_id))
        form = form_class(request.POST, request.FILES, instance=job)
        return control.ask_to_enable(stored, form.changes()) if form.is_valid() else None

    def save_model(self, request: HttpRequest, obj: Job, form: Any, change: bool) -> None:
        """Write what the person changed, and nothing else."""
        columns = form.changes()
        if change:
            asked = getattr(request, "scheduler_asked", None)
            control.write_definition(obj.name, columns, asked, actor_of(request)) if columns else None
            return
        job = control.insert_job(columns, actor_of(request))
        obj.pk, obj._state.adding, obj._state.db = job.pk, False, job._state.db

    def response_post_save_add(self, request: HttpRequest, obj: Job) -> HttpResponseRedirect:
        """Show the new job, to who may look at it."""
        if not self.has_view_permission(request):
            return super().response_post_save_add(request, obj)
        return HttpResponseRedirect(self._job_url(obj.pk))

    def response_post_save_change(self, request: HttpRequest, obj: Job) -> HttpResponseRedirect:
        """Show the job as it is now."""
        return HttpResponseRedirect(self._job_url(obj.pk))

    def has_delete_permission(self, request: HttpRequest, obj: Job | None = None) -> bool:
        """A job that the code defines would come back at the next start."""
        return not (obj is not None and control.code_owns(obj)) and super().has_delete_permission(request, obj)

    def delete_model(self, request: HttpRequest, obj: Job) -> None:
        """Delete a job with its runs."""
        control.remove_job(obj.name, actor=actor_of(request))

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Job]) -> None:
        """Delete jobs with their runs; a refusal is told and stops no other."""
        for name in queryset.values_list("name", flat=True):
            try:
                control.remove_job(name, actor=actor_of(request))
            except SchedulerError as refusal:
                self.message_user(request, str(refusal), messages.ERROR)

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        """Name what would go, without reading a million runs to count them."""
        jobs = list(objs)
        allowed = super().has_delete_permission(request) and all(
            self.has_delete_permission(request, job) for job in jobs if not control.code_owns(job)
        )
        names = [_("{name} and its run log").format(name=job.shown_name) for job in jobs[:MOST_NAMED]]
        owned = [_("{name}, defined in {module}").format(name=job.name, module=job.source)
                 for job in jobs if control.code_owns(job)]  # fmt: skip
        counts = {self.opts.verbose_name_plural: len(jobs)}
        return names, counts, set() if allowed else {self.opts.verbose_name}, owned

    def _job(self, request: HttpRequest, pk: int | None) -> Job | None:
        """Return the job of this number, if the project's query finds it."""
        return jobs_found(self.admin_site, request).filter(pk=pk or 0).first()

    def _job_url(self, pk: Any) -> str:
        return address_of(self.admin_site.name, "job_page", pk)
