"""Backfill: runs for slots of the past, from the page of a job. First a list of what would run, then a POST that asks
for it."""

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from scheduler.admin.allowed import may_read_runs, runs_for
from scheduler.admin.backfill.form import ALL, BackfillForm
from scheduler.admin.jobs.confirm import CONFIRMED
from scheduler.admin.names import address_of
from scheduler.admin.page_context import actor_of, now_of, page_context
from scheduler.admin.times import counted_words, with_times
from scheduler.engine import control
from scheduler.engine.views.datetimes import said
from scheduler.exceptions import InvalidOption, SchedulerError
from scheduler.models import Job, RunLog, Status, Trigger
from scheduler.models.carriers import is_carrier
from scheduler.registry import registry
from scheduler.schedules import Schedule
from scheduler.schedules.base import Slots

if TYPE_CHECKING:
    from scheduler.admin.jobs.run_with import RunWithMixin as _ModelAdmin
else:
    _ModelAdmin = object

ENDS = 5
"""So many slots are named at the beginning and at the end of the list."""


class BackfillMixin(_ModelAdmin):
    """The page that asks for the time, lists what would run, and promises it."""

    def may_backfill(self, request: HttpRequest, job: Job) -> bool:
        """Return whether the job has slots of the past to run here, and the person may run it."""
        rules = job.schedule
        has_slots = isinstance(rules, Schedule) and rules.slots in (Slots.TIMED, Slots.ONE)
        is_able = has_slots and not rules.from_completion and job.orphaned_at is None and not is_carrier(job)
        return is_able and registry.find(job.task) is not None and self.has_run_permission(request, job)

    def backfill_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        """Ask for the time; then list what would run; then, confirmed, promise the runs."""
        job = self.job_or_404(request, pk, "run")
        page = address_of(self.admin_site.name, "job_page", job.pk)
        if not self.may_backfill(request, job):
            words = _("{name} cannot be backfilled here.").format(name=f"“{job.name}”")
            self.message_user(request, words, messages.ERROR)
            return HttpResponseRedirect(page)
        given, sees = request.POST if request.method == "POST" else None, may_read_runs(self.admin_site, request)
        form = BackfillForm(job, now_of(request), given, runs_are_seen=sees)
        context = {"job": job, "form": form, "back": page, "confirm": self._warning(job)}
        if form.is_valid():
            try:
                if CONFIRMED in request.POST:
                    return self._promised(request, job, form)
                context |= self._listed(request, job, form)
            except (InvalidOption, SchedulerError) as refusal:
                form.add_error(None, str(refusal))
        title = _("Backfill: {name}").format(name=job.name)
        return TemplateResponse(
            request, "admin/scheduler/job/backfill.html", page_context(self, request, title, **context)
        )

    def _promised(self, request: HttpRequest, job: Job, form: BackfillForm) -> HttpResponse:
        runs = control.backfill(job.name, **form.cleaned_data, actor=actor_of(request))
        count, site = len(runs), self.admin_site.name
        words = ngettext(
            "Backfill: %d run was promised.", "Backfill: %d runs were promised, one after the other.", count
        )
        if count:
            self.log_change(request, job, words % count)
        self.message_user(request, f"“{job.name}”: {words % count}", messages.SUCCESS if count else messages.WARNING)
        if not (count and may_read_runs(self.admin_site, request)):
            return HttpResponseRedirect(address_of(site, "job_page", job.pk))
        query = urlencode({"job": job.pk, "trigger__exact": Trigger.BACKFILL})
        return HttpResponseRedirect(f"{address_of(site, 'runlog_changelist')}?{query}")

    def _listed(self, request: HttpRequest, job: Job, form: BackfillForm) -> dict[str, Any]:
        """Return what would run, and what of the other slots is decided; nothing is written."""
        runs = control.backfill(job.name, **form.cleaned_data, dry_run=True)
        every = control.backfill(job.name, **form.cleaned_data | {"only": ALL}, dry_run=True)
        chosen = {run.scheduled_for for run in runs}
        others = [run for run in every if run.scheduled_for not in chosen]
        among = runs_for(self.admin_site, request, job) if may_read_runs(self.admin_site, request) else None
        return {
            "listed": True,
            "count": len(runs),
            "slots": [_told(run, form, with_attempt=among is not None) for run in _ends(runs)],
            "left_out": max(0, len(runs) - 2 * ENDS),
            "others": len(others),
            "decided": _decided(among.filter(job=job), others) if among is not None and others else "",
        }

    def _warning(self, job: Job) -> str | bool | None:
        task = registry.find(job.task)
        return task.confirm if task is not None else None


def _ends(runs: Sequence[RunLog]) -> list[RunLog | None]:
    """Return the first and the last of the runs, with None for those between."""
    return list(runs) if len(runs) <= 2 * ENDS else [*runs[:ENDS], None, *runs[-ENDS:]]


def _told(run: RunLog | None, form: BackfillForm, *, with_attempt: bool) -> Any:
    """Return a slot, and which attempt of it that would be: what came before is for those who may see runs."""
    return run and (with_times(said(run.scheduled_for, form.zone), form.zone), run.attempt if with_attempt else 1)


def _decided(among: Any, others: Sequence[RunLog]) -> str:
    """Return how the last attempts of some slots ended, such as “38 succeeded, 2 failed”."""
    slots = [run.scheduled_for for run in others]
    rows = among.filter(scheduled_for__in=slots).order_by("attempt").values_list("scheduled_for", "status")
    counts = Counter(dict(rows).values())
    labels = dict(Status.choices)
    return counted_words({status: counts[status] for status in labels if counts[status]}, labels)
