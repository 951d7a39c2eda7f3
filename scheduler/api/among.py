"""Among: the jobs that a caller may reach, where the project narrows them (`SCHEDULER_API_JOBS`)."""

import re
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.module_loading import import_string

from scheduler.api.problem import ApiProblem
from scheduler.api.rights import Right
from scheduler.arguments import is_name
from scheduler.conf import conf
from scheduler.engine.base import Engine
from scheduler.models import EVERYTHING, Job, RunLog, in_groups
from scheduler.safetext import shown

V = TypeVar("V", bound=Callable[..., Any])
PARAMETER = re.compile(r"{(?:\w+:)?(\w+)}")


def jobs_among(request: HttpRequest, right: Right) -> QuerySet[Job] | None:
    """Return the jobs for which the project gives the caller a right; None where it narrows nothing."""
    if not conf.API_JOBS:
        return None
    jobs = Job.objects.using(Engine().using).order_by()
    narrowed = import_string(conf.API_JOBS)(request, jobs, f"{Job._meta.app_label}.{right}")
    return jobs.filter(pk__in=narrowed.order_by().values("pk"))


def reaches(request: HttpRequest, right: Right, job: Job) -> bool:
    """Return whether the project lets the caller reach a job."""
    among = jobs_among(request, right)
    return among is None or among.filter(pk=job.pk).exists()


def within(right: Right, path: str) -> Callable[[V], V]:
    """Have the view of a path refuse a job or a run in it that the caller may not reach."""
    parameter = PARAMETER.search(path)
    refuse = _REFUSALS.get(parameter[1]) if parameter else None

    def decorate(view: V) -> V:
        if parameter is None or refuse is None:
            return view

        @wraps(view)
        def checked(request: HttpRequest, *args: Any, **values: Any) -> Any:
            among = jobs_among(request, right)
            if among is not None:
                refuse(request, right, among, values[parameter[1]])
            return view(request, *args, **values)

        return cast(V, checked)

    return decorate


def refuse_unless_all(request: HttpRequest, right: Right, group: str = EVERYTHING) -> None:
    """Raise a problem with status 403 unless the caller may reach each job of a group, or each job."""
    among = jobs_among(request, right)
    if among is None:
        return
    jobs = Job.objects.using(Engine().using).order_by()
    concerned = jobs if group == EVERYTHING else jobs.filter(in_groups([group]))
    if concerned.exclude(pk__in=among.values("pk")).exists():
        raise ApiProblem("forbidden", "This concerns jobs that you may not reach.")


def _refuse_job(request: HttpRequest, right: Right, among: QuerySet[Job], name: str) -> None:
    """Names that no job has any more are refused too: they may have been hidden. PUT makes a job of one."""
    job = Job.objects.using(Engine().using).filter(name=name).first() if is_name(name) else None
    if job is None and request.method == "PUT":
        return
    if job is None or not among.filter(pk=job.pk).exists():
        raise ApiProblem("not_found", f"There is no job {shown(name)} that you may reach.")


def _refuse_run(request: HttpRequest, right: Right, among: QuerySet[Job], run_id: int) -> None:
    if not RunLog.objects.using(Engine().using).filter(pk=run_id, job__in=among).exists():
        raise ApiProblem("not_found", f"There is no run {run_id} that you may reach.")


def _refuse_group(request: HttpRequest, right: Right, among: QuerySet[Job], group: str) -> None:
    refuse_unless_all(request, right, group)


_REFUSALS: dict[str, Callable[..., None]] = {
    "name": _refuse_job,
    "task": _refuse_job,
    "run_id": _refuse_run,
    "group": _refuse_group,
}
