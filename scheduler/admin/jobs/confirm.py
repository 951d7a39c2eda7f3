"""The pages that ask before something happens to jobs: a pause, and a run of a task that wants to be confirmed."""

from dataclasses import dataclass
from typing import Any

from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext as _

from scheduler.admin.jobs.pause_form import PauseForm
from scheduler.admin.page_context import page_context
from scheduler.models import Job
from scheduler.registry import registry

MOST_NAMED = 50
CONFIRMED = "confirmed"


@dataclass(frozen=True, slots=True)
class Warned:
    """A job whose task wants a run by hand confirmed, and what the code says about it."""

    job: Job
    words: str


def wanting_confirmation(jobs: QuerySet[Job]) -> list[Warned]:
    """Return those of the jobs whose task is registered with `confirm`."""
    words = {task.name: task.confirm for task in registry if task.confirm}
    found = jobs.filter(task__in=words) if words else ()
    return [Warned(job, said if isinstance(said := words[job.task], str) else "") for job in found]


def run_page(
    admin: Any, request: HttpRequest, warned: list[Warned], jobs: QuerySet[Job], *, bulk: bool
) -> HttpResponse:
    """Ask whether to run the jobs; nothing of them has started yet."""
    chosen = list(jobs)
    context = page_context(
        admin,
        request,
        _("Run now?"),
        warned=warned[:MOST_NAMED],
        more=max(0, len(warned) - MOST_NAMED),
        others=len(chosen) - len(warned),
        **_what_is_sent_again(request, chosen, bulk=bulk),
    )
    return TemplateResponse(request, "admin/scheduler/job/run.html", context)


def pause_page(admin: Any, request: HttpRequest, jobs: list[Job], form: PauseForm, *, bulk: bool) -> HttpResponse:
    """Ask for the reason and the end of a pause."""
    context = page_context(
        admin,
        request,
        _("Pause"),
        jobs=jobs[:MOST_NAMED],
        more=max(0, len(jobs) - MOST_NAMED),
        form=form,
        **_what_is_sent_again(request, jobs, bulk=bulk),
    )
    return TemplateResponse(request, "admin/scheduler/job/pause.html", context)


def came_from(request: HttpRequest) -> str:
    """Return the page of this site that the person came from, empty when it is none."""
    address = request.POST.get("next") or request.headers.get("Referer", "")
    is_ours = url_has_allowed_host_and_scheme(address, {request.get_host()}, request.is_secure())
    return address if is_ours and address != request.build_absolute_uri(request.path) else ""


def _what_is_sent_again(request: HttpRequest, jobs: list[Job], *, bulk: bool) -> dict[str, Any]:
    """Return what names the same jobs in the answer, never a list of thousands, and the way back."""
    across = bulk and request.POST.get("select_across") == "1"
    ids = [job.pk for job in (jobs[:1] if across else jobs)] if bulk else []
    origin = came_from(request)
    return {
        "bulk": bulk,
        "checkbox": ACTION_CHECKBOX_NAME,
        "across": across,
        "ids": ids,
        "next": origin,
        "back": origin or (request.path if bulk else "../"),
    }
