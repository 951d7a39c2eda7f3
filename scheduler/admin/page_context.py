"""What pages rest on: the time that they show, and what each hands to its template."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, TypeVar

from django.contrib import messages
from django.db.models import Case, Count, Max, Q, QuerySet, Sum, Value
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.translation import gettext as _

from scheduler.engine.base import Engine
from scheduler.engine.db.shared_time import SharedMicroseconds, shared_now
from scheduler.engine.views.conditions import judged_jobs, urgency
from scheduler.engine.views.pauses import Paused, paused_groups
from scheduler.models import LONG_AGO, Instance, Job, RunLog
from scheduler.registry import registry

T = TypeVar("T")

READS = ("GET", "HEAD")
MOST_CHANGES = 2**40
"""More than any job has. SQLite keeps numbers in a column that no sum can hold: such a row is no news of the others."""
COUNTED = Q(version__range=(0, MOST_CHANGES))


def page_context(admin: Any, request: HttpRequest, title: str, **more: Any) -> dict[str, Any]:
    """Return the context of the admin site with title, media and model; `admin:` in templates means this site."""
    request.current_app = admin.admin_site.name
    return {
        **admin.admin_site.each_context(request),
        "title": title,
        "opts": admin.model._meta,
        "media": admin.media,
        **more,
    }


def may_add_job(admin: Any, request: HttpRequest) -> bool:
    """Return whether the user may add a job here, and this process has a task to choose for it."""
    return bool(registry.names()) and bool(admin.has_add_permission(request))


def now_of(request: HttpRequest) -> datetime:
    """Return the time by the clock that all instances go by, asked for once in a request."""
    return once_in(request, "scheduler_now", lambda: _time_told(request) or shared_now(Engine().using))


def _time_told(request: HttpRequest) -> datetime | None:
    """Return the time that the database told beside the marks, if they were asked for."""
    told: Any = getattr(request, "scheduler_marks", {}).get("clock")
    return None if told is None else LONG_AGO + timedelta(microseconds=int(told))


def newest_run(request: HttpRequest) -> int:
    """Return the key of the newest run there is, 0 without one."""
    return marks_of(request).get("run") or 0


def marks_of(request: HttpRequest) -> dict[str, Any]:
    """Return the key of the newest run, the numbers of instances and jobs, how often jobs have changed, and the time by
    the database, asked for once in a request, in one query."""
    return once_in(request, "scheduler_marks", _marks)


def _marks() -> dict[str, Any]:
    run = RunLog.objects.order_by().values(tag=Value("run")).annotate(number=Max("pk"))
    instances = Instance.objects.order_by().values(tag=Value("instances")).annotate(number=Count("pk"))
    jobs = Job.objects.order_by().values(tag=Value("jobs")).annotate(number=Count("pk"))
    changes = Job.objects.order_by().values(tag=Value("changes")).annotate(number=Sum("version", filter=COUNTED))
    clock = Instance.objects.order_by().values(tag=Value("clock")).annotate(number=SharedMicroseconds())
    others = (rows.values_list("tag", "number") for rows in (instances, jobs, changes, clock))
    rows: Any = run.values_list("tag", "number").union(*others, all=True).order_by()
    return dict(rows)


def actor_of(request: HttpRequest) -> str:
    """Return who does what the request asks for, as the history of jobs names them."""
    return request.user.get_username()


def paused_of(request: HttpRequest) -> Paused:
    """Return the paused groups, asked for once in a request that only shows them."""
    return once_in(request, "scheduler_paused", paused_groups)


def judged_of(request: HttpRequest) -> dict[str, list[int]]:
    """Return the keys of the jobs that are failing, or not as expected, asked for once in a request."""
    return once_in(request, "scheduler_judged", lambda: judged_jobs(now_of(request)))


def tasks_and_groups(request: HttpRequest, jobs: QuerySet[Job]) -> list[Any]:
    """Return the pairs of task and group that some jobs have, asked for once in a request."""
    return once_in(request, "scheduler_pairs", lambda: list(jobs.order_by().values("task", "group").distinct()))


def once_in(request: HttpRequest, name: str, ask: Callable[[], T]) -> T:
    """Return what `ask` finds, asked for once in a request under this name."""
    if not hasattr(request, name):
        setattr(request, name, ask())
    found: T = getattr(request, name)
    return found


def urgency_of(request: HttpRequest) -> Case:
    """Return what jobs are ordered by, made once in a request: it is part of most of its queries."""
    return once_in(request, "scheduler_urgency", lambda: urgency(now_of(request), judged_of(request)))


def with_attention(jobs: QuerySet[Job], request: HttpRequest) -> QuerySet[Any, Any]:
    """Annotate jobs with `attention`: 0 is the most urgent."""
    return jobs.annotate(attention=urgency_of(request))


def listed_of(admin: Any, request: HttpRequest, jobs: QuerySet[Job]) -> QuerySet[Any, Any]:
    """Return the jobs of a list with `attention`, annotated once: a page asks ten times, each of milliseconds."""
    listed: dict[Any, QuerySet[Any, Any]] = once_in(request, "scheduler_listed", dict)
    if admin not in listed:
        listed[admin] = with_attention(jobs, request)
    return listed[admin].all()


def led_back(admin: Any, request: HttpRequest, address: str) -> HttpResponse:
    """Lead to the page with the button, from the address that it posts to: who had to sign in between is sent there."""
    admin.message_user(request, _("Nothing was done: press the button again."), messages.WARNING)
    return HttpResponseRedirect(address)
