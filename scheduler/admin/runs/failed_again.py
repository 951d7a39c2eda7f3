"""Run again all failed runs of a filter: an action of the run log that asks first, and names what it did not do."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any, cast

from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.db.models import Exists, OuterRef, QuerySet
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from scheduler.admin.allowed import may_change, may_run
from scheduler.admin.jobs.confirm import CONFIRMED, came_from, wanting_confirmation
from scheduler.admin.page_context import actor_of, page_context
from scheduler.admin.request_values import whole_number
from scheduler.admin.viewable import hides_rows, only_viewable
from scheduler.clock import SYSTEM_CLOCK
from scheduler.engine import control
from scheduler.exceptions import InvalidOption, Refused, SchedulerError
from scheduler.models import FAILURES, Job, RunLog
from scheduler.models.carriers import CARRIERS

if TYPE_CHECKING:
    from scheduler.admin.runs.enqueue_again import EnqueueAgainMixin as _ModelAdmin
else:
    _ModelAdmin = object

MOST_RUNS = 1_000
"""So many runs are run again at a time, the oldest first."""
NAMED = 20
PATIENCE = timedelta(seconds=5)
"""After that, the jobs that are left wait for the next time."""
WORDS = {
    "tried_since": gettext_lazy("their slots have a later attempt"),
    "busy": gettext_lazy("they have not ended"),
    "for_users": gettext_lazy("they were for users"),
    "invalid": gettext_lazy("the job cannot be read, or its task does not take the arguments"),
    "gate_closed": gettext_lazy("the gate is closed"),
    "not_registered": gettext_lazy("the task is not registered in this process"),
    "orphaned": gettext_lazy("the job is orphaned"),
    "not_allowed": gettext_lazy("you may not run the job, or not with the arguments of the run"),
    "gone": gettext_lazy("they were removed"),
    "later": gettext_lazy("it took too long: do it again for these"),
}


@dataclass(slots=True)
class Done:
    """What came of it: the attempts promised, by job, and how many runs have none, by code."""

    promised: dict[Job, int] = field(default_factory=dict)
    refused: Counter[str] = field(default_factory=Counter)


class FailedAgainMixin(_ModelAdmin):
    """The action. Permissions are those of a run by hand, asked for each job."""

    actions: Any = ("run_failed_again", "enqueue_again")

    @admin.action(description=gettext_lazy("Run again (failed runs of jobs)…"), permissions=["run"])
    def run_failed_again(self, request: HttpRequest, runs: QuerySet[RunLog]) -> HttpResponse | None:
        """Ask, with the number of the runs, then promise a further attempt of the slot of each."""
        chosen, more = self._failed(request, runs)
        if not chosen:
            words = _("None of the chosen runs is a failed run of a job whose slot has no later attempt.")
            self.message_user(request, words, messages.WARNING)
            return None
        if CONFIRMED not in request.POST:
            return self._asked(request, chosen, more=more)
        self._tell_done(request, self._promise(request, chosen))
        return None

    def _failed(self, request: HttpRequest, runs: QuerySet[RunLog]) -> tuple[list[RunLog], bool]:
        """Return the failed ones of some runs whose slots have no later attempt, without those that came since the
        person was asked, and whether there are more of them."""
        later = RunLog.objects.filter(job=OuterRef("job"), scheduled_for=OuterRef("scheduled_for"))
        failed = runs.filter(status__in=FAILURES).exclude(Exists(later.filter(attempt__gt=OuterRef("attempt"))))
        failed = failed.exclude(job__in=Job.objects.filter(CARRIERS).values("pk"))
        if (until := whole_number(request.POST.get("until", ""))) is not None:
            failed = failed.filter(pk__lte=until)
        found = list(failed.order_by("pk").defer(None).defer("log", "error", "result", "totals")[: MOST_RUNS + 1])
        chosen = found[:MOST_RUNS]
        return only_viewable(self, request, chosen) if hides_rows(self) else chosen, len(found) > MOST_RUNS

    def _asked(self, request: HttpRequest, chosen: list[RunLog], *, more: bool) -> HttpResponse:
        across = request.POST.get("select_across") == "1"
        by_job = Counter(run.job.name for run in chosen).most_common()
        jobs = Job.objects.filter(pk__in={run.job_id for run in chosen})
        context = page_context(
            self, request, _("Run again?"),
            count=len(chosen), most=MOST_RUNS if more else None, by_job=by_job[:NAMED],
            more_jobs=max(0, len(by_job) - NAMED), warned=wanting_confirmation(jobs), until=chosen[-1].pk,
            bulk=True, checkbox=ACTION_CHECKBOX_NAME, across=across,
            ids=[run.pk for run in (chosen[:1] if across else chosen)],
            next=came_from(request), back=request.get_full_path(),
        )  # fmt: skip
        return TemplateResponse(request, "admin/scheduler/runlog/run_again.html", context)

    def _promise(self, request: HttpRequest, chosen: list[RunLog]) -> Done:
        """Promise the attempts job by job, as long as it takes no longer than a person waits for a page."""
        done, began = Done(), SYSTEM_CLOCK.monotonic()
        for job, runs in _by_job(chosen):
            if SYSTEM_CLOCK.monotonic() - began > PATIENCE.total_seconds():
                done.refused["later"] += len(runs)
                continue
            allowed = [run.pk for run in runs if self._may_run_failed(request, job, run)]
            done.refused["not_allowed"] += len(runs) - len(allowed)
            if not allowed:
                continue
            try:
                promised, refused = control.run_failed_again(job.name, allowed, actor=actor_of(request))
            except (SchedulerError, InvalidOption) as refusal:
                done.refused[refusal.code if isinstance(refusal, Refused) else "invalid"] += len(allowed)
            else:
                done.refused += refused
                if promised:
                    done.promised[job] = len(promised)
        return done

    def _may_run_failed(self, request: HttpRequest, job: Job, run: RunLog) -> bool:
        """Asked of each job once for runs with its own arguments, and once for those with others."""
        known: dict[Any, bool] = request.__dict__.setdefault("scheduler_may_run", {})
        asked = (job.pk, run.kwargs is None)
        if asked not in known:
            site = self.admin_site
            known[asked] = may_run(site, request, job) and (run.kwargs is None or may_change(site, request, job))
        return known[asked]

    def _tell_done(self, request: HttpRequest, done: Done) -> None:
        count = sum(done.promised.values())
        words = ngettext("%d run runs again.", "%d runs run again, those of a job one after the other.", count) % count
        if count:
            self.message_user(request, words, messages.SUCCESS)
        else:
            self.message_user(request, _("None of the runs runs again."), messages.WARNING)
        for job, number in done.promised.items():
            told = ngettext("%d failed run runs again.", "%d failed runs run again.", number) % number
            self.log_change(request, cast(Any, job), told)
        for code, number in (+done.refused).most_common():
            text = ngettext("%d run does not ({code}): {why}.", "%d runs do not ({code}): {why}.", number) % number
            self.message_user(request, text.format(code=code, why=WORDS.get(code, code)), messages.ERROR)


def _by_job(runs: list[RunLog]) -> Iterator[tuple[Job, list[RunLog]]]:
    found: dict[int, list[RunLog]] = {}
    for run in runs:
        found.setdefault(run.job_id, []).append(run)
    for some in found.values():
        yield some[0].job, some
