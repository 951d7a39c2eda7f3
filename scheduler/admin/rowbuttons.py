"""The buttons of a job: run now, pause or resume, reset."""

from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from scheduler.engine.control import names_no_user
from scheduler.models import Job, JobState
from scheduler.registry import registry


def row_buttons(job: Job, site: str, *, run: bool, pause: bool) -> SafeString:
    """Return what applies to the job; each submits the form around it to an address of its own."""
    buttons = []
    if run and job.job_state not in (JobState.ORPHANED, JobState.INVALID) and not names_no_user(job):
        task = registry.find(job.task)
        word = _("Run now…") if task is not None and task.confirm else _("Run now")
        buttons.append(_button(job, site, "run", word, "▶"))
    if pause and (job.paused_at or job.broken_at):
        name, word, icon = ("reset", _("Reset"), "↺") if job.broken_at else ("resume", _("Resume"), "⏵")
        buttons.append(_button(job, site, name, word, icon))
    elif pause and job.enabled:
        buttons.append(_link(job, site, "pause", _("Pause"), "❚❚"))
    return format_html_join(" ", "{}", ((one,) for one in buttons))


def _button(job: Job, site: str, action: str, word: str, icon: str) -> SafeString:
    return format_html(
        '<button type="submit" class="sched-button" formaction="{}" formmethod="post" formnovalidate>'
        '<span aria-hidden="true">{}</span> {}<span class="sched-sr"> {}</span></button>',
        reverse(f"{site}:scheduler_job_{action}", args=[job.pk]),
        icon,
        word,
        job.name,
    )


def _link(job: Job, site: str, action: str, word: str, icon: str) -> SafeString:
    return format_html(
        '<a class="sched-button" href="{}"><span aria-hidden="true">{}</span> {}<span class="sched-sr"> {}</span></a>',
        reverse(f"{site}:scheduler_job_{action}", args=[job.pk]),
        icon,
        word,
        job.name,
    )
