"""The buttons of a job: run now, pause or resume, reset."""

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from scheduler.admin.names import address_of
from scheduler.engine.control import names_no_user
from scheduler.models import Job, JobState
from scheduler.models.carriers import is_carrier
from scheduler.registry import registry

BUTTON = '<button type="submit" class="sched-button" formaction="{}" formmethod="post" formnovalidate>{}</button>'
LINK = '<a class="sched-button" href="{}">{}</a>'


def row_buttons(job: Job, site: str, *, run: bool, pause: bool) -> SafeString:
    """Return what applies to the job; each submits the form around it to an address of its own."""
    buttons = []
    if run and _may_be_run(job):
        task = registry.find(job.task)
        word = _("Run now…") if task is not None and task.confirm else _("Run now")
        buttons.append(_button(job, site, "run", word, "▶"))
    if pause and (job.paused_at or job.broken_at):
        name, word, icon = ("reset", _("Reset"), "↺") if job.broken_at else ("resume", _("Resume"), "▶")
        buttons.append(_button(job, site, name, word, icon))
    elif pause and job.enabled:
        buttons.append(_button(job, site, "pause", _("Pause"), "❚❚", LINK))
    return format_html_join(" ", "{}", ((one,) for one in buttons))


def _may_be_run(job: Job) -> bool:
    return job.job_state not in (JobState.ORPHANED, JobState.INVALID) and not (names_no_user(job) or is_carrier(job))


def _button(job: Job, site: str, action: str, word: str, icon: str, shape: str = BUTTON) -> SafeString:
    address = address_of(site, f"job_{action}", job.pk)
    inside = '<span aria-hidden="true">{}</span> {}<span class="sched-sr"> {}</span>'
    return format_html(shape, address, format_html(inside, icon, word, job.name))
