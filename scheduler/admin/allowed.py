"""What a person may see and do: the ModelAdmins that the project has registered are asked, never the tables alone.

A project narrows them as it does everywhere in Django's admin: by `get_queryset`, and by `has_*_permission` of a row.
"""

from collections.abc import Collection, Sequence
from typing import Any

from django.contrib.admin import AdminSite
from django.db.models import QuerySet
from django.http import HttpRequest

from scheduler.admin.names import right_named
from scheduler.admin.page_context import once_in
from scheduler.admin.readonly import ReadOnlyListMixin
from scheduler.admin.runs.recent import recent_runs
from scheduler.admin.viewable import hides_rows, only_viewable, viewable_jobs, viewable_runs
from scheduler.models import EVERYTHING, Job, RunLog, in_groups


def jobs_for(site: AdminSite, request: HttpRequest) -> QuerySet[Job]:
    """Return the jobs that the person may see, in no order and without what lists add to them."""
    found = jobs_found(site, request)
    return viewable_jobs(site.get_model_admin(Job), request, found) if site.is_registered(Job) else found


def jobs_found(site: AdminSite, request: HttpRequest) -> QuerySet[Job]:
    """Return the jobs that the project's query finds: who takes one of them asks about it then."""
    found = _visible(site, request, Job)
    return Job.objects.filter(pk__in=found.order_by().values("pk")) if found is not None else Job.objects.order_by()


def runs_for(site: AdminSite, request: HttpRequest, job: Job) -> QuerySet[RunLog]:
    """Return the runs that the person may see, in no order: all of them, or of the job where the project hides some."""
    found = _visible(site, request, RunLog)
    if found is None:
        return RunLog.objects.order_by()
    return viewable_runs(site.get_model_admin(RunLog), request, found.order_by(), job)


def every_run_for(site: AdminSite, request: HttpRequest) -> QuerySet[RunLog] | None:
    """Return the runs of all jobs that the person may see, in no order; None where that is asked of each row."""
    if not may_read_runs(site, request):
        return None
    found = _visible(site, request, RunLog)
    if found is None:
        return runs_of_jobs(narrowed_jobs(site, request))
    return None if hides_rows(site.get_model_admin(RunLog)) else found.order_by()


def recent_runs_for(
    site: AdminSite, request: HttpRequest, jobs: Sequence[Job], limit: int, **options: Any
) -> dict[int, list[RunLog]]:
    """Return those of the newest runs of each job that the person may see; see `recent_runs`."""
    found = _visible(site, request, RunLog)
    if found is None:
        return recent_runs([job.pk for job in jobs], limit, among=RunLog.objects.order_by(), **options)
    runs = recent_runs([job.pk for job in jobs], limit, among=found.order_by(), **options)
    asked = site.get_model_admin(RunLog)
    if not hides_rows(asked):
        return runs
    for job in jobs:
        for run in runs.get(job.pk, ()):
            run.job = job
    return {pk: only_viewable(asked, request, some) for pk, some in runs.items()}


def seen_of(site: AdminSite, request: HttpRequest, few: QuerySet[RunLog]) -> list[RunLog]:
    """Return those of a few runs that the person may see, each with its job and without its long texts."""
    if not may_read_runs(site, request):
        return []
    runs = list(few.defer("log", "error", "result", "kwargs", "totals", "return_value").prefetch_related("job"))
    found = _visible(site, request, RunLog)
    if runs and (found is None or not _is_whole_table(found)):
        among = runs_of_jobs(narrowed_jobs(site, request)) if found is None else found.order_by()
        seen = set(among.filter(pk__in=[run.pk for run in runs]).values_list("pk", flat=True))
        runs = [run for run in runs if run.pk in seen]
    return runs if found is None else only_viewable(site.get_model_admin(RunLog), request, runs)


def runs_of_jobs(jobs: QuerySet[Job] | None) -> QuerySet[RunLog]:
    """Return the runs of some jobs, in no order; of all of them for None."""
    runs = RunLog.objects.order_by()
    return runs if jobs is None else runs.filter(job_id__in=jobs.values("pk"))


def may_read_runs(site: AdminSite, request: HttpRequest, run: RunLog | None = None) -> bool:
    """Return whether the person may see what ran: when, and with which errors, logs and results."""
    if not site.is_registered(RunLog):
        return request.user.has_perm(right_named("view_runlog"))
    return site.get_model_admin(RunLog).has_view_permission(request, run)


def hidden_runs(site: AdminSite, request: HttpRequest, job: Job, named: Collection[int]) -> set[int]:
    """Return which of some runs of a job the person may not see; one query where the project hides any, else none."""
    if not may_read_runs(site, request):
        return set(named)
    found = _visible(site, request, RunLog)
    if not named or found is None or (_is_whole_table(found) and not hides_rows(site.get_model_admin(RunLog))):
        return set()
    runs = list(found.order_by().filter(job=job, pk__in=named))
    for run in runs:
        run.job = job
    return set(named) - {run.pk for run in only_viewable(site.get_model_admin(RunLog), request, runs)}


def sees_every_run(site: AdminSite, request: HttpRequest, job: Job) -> bool:
    """Return whether the project hides no run of a job from the person who may see the job."""
    if not may_read_runs(site, request):
        return False
    found = _visible(site, request, RunLog)
    if found is None or (_is_whole_table(found) and not hides_rows(site.get_model_admin(RunLog))):
        return True
    return not job.runs.exclude(pk__in=runs_for(site, request, job).filter(job=job).values("pk")).exists()


def may_clear(site: AdminSite, request: HttpRequest, job: Job) -> bool:
    """Return whether the person may delete the runs of a job: by the project's word, where it has said one."""
    if site.is_registered(RunLog):
        asked: Any = site.get_model_admin(RunLog)
        ours = ReadOnlyListMixin.has_delete_permission
        if getattr(asked.has_delete_permission, "__func__", None) is not ours:
            return bool(asked.has_delete_permission(request)) and sees_every_run(site, request, job)
    return request.user.has_perm(right_named("delete_runlog")) and sees_every_run(site, request, job)


def may_see_list(site: AdminSite, request: HttpRequest, model: Any) -> bool:
    """Return whether there is a list of such rows here, which the person may see."""
    return site.is_registered(model) and bool(site.get_model_admin(model).has_view_permission(request))


def sees_every_job(site: AdminSite, request: HttpRequest) -> bool:
    """Return whether the project hides no job from the person; asked once in a request."""
    return once_in(request, "scheduler_sees_every_job", lambda: _hides_no_job(site, request))


def _hides_no_job(site: AdminSite, request: HttpRequest) -> bool:
    found = _visible(site, request, Job)
    if found is None or (_is_whole_table(found) and not hides_rows(site.get_model_admin(Job))):
        return True
    return not Job.objects.exclude(pk__in=jobs_for(site, request).values("pk")).exists()


def narrowed_jobs(site: AdminSite, request: HttpRequest) -> QuerySet[Job] | None:
    """Return the jobs that the person may see where the project hides others, else None."""
    return None if sees_every_job(site, request) else jobs_for(site, request)


def may_run(site: AdminSite, request: HttpRequest, job: Job) -> bool:
    """Return whether the person may run a job, and cancel its runs."""
    if not site.is_registered(Job):
        return request.user.has_perm(right_named("run_job"))
    asked: Any = site.get_model_admin(Job)
    return bool(asked.has_run_permission(request, job)) and jobs_for(site, request).filter(pk=job.pk).exists()


def may_change(site: AdminSite, request: HttpRequest, job: Job) -> bool:
    """Return whether the person may change a job: that gives any keyword arguments to its runs, and tells them."""
    if not site.is_registered(Job):
        return request.user.has_perm(right_named("change_job"))
    return site.get_model_admin(Job).has_change_permission(request, job)


def jobs_of_group(name: str) -> QuerySet[Job]:
    """Return the jobs that the pause of a group stops."""
    return Job.objects.order_by() if name == EVERYTHING else Job.objects.filter(in_groups([name])).order_by()


def _is_whole_table(found: QuerySet[Any]) -> bool:
    """Whether nothing in the query leaves a row out, so that the database need not be asked: the usual case."""
    query = found.query
    return not (query.where or query.is_sliced or query.combinator or query.extra_tables or len(query.alias_map) > 1)


def _visible(site: AdminSite, request: HttpRequest, model: Any) -> QuerySet[Any] | None:
    return site.get_model_admin(model).get_queryset(request) if site.is_registered(model) else None
