"""The buttons of a job, the most needed one first: reset, resume, run now or pause; in a row the others in a menu."""

from collections.abc import Sequence

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
MENU = (
    '<details class="sched-menu" name="sched-menu"><summary class="sched-button">'
    '<span aria-hidden="true">•••</span><span class="sched-sr">{}</span></summary>'
    '<div class="sched-menu-items">{}</div></details>'
)


def job_buttons(job: Job, site: str, *, run: bool, pause: bool) -> list[SafeString]:
    """Return what applies to the job; each submits the form around it to an address of its own."""
    buttons = []
    stopped = bool(job.paused_at or job.broken_at)
    if pause and stopped:
        name, word, icon = ("reset", _("Reset"), "↺") if job.broken_at else ("resume", _("Resume"), "▶")
        buttons.append(_button(job, site, name, word, icon))
    if run and _may_be_run(job):
        buttons.append(_button(job, site, "run", _run_word(job), "▶"))
    if pause and job.enabled and not stopped:
        buttons.append(_button(job, site, "pause", _("Pause…"), "❚❚", LINK))
    return buttons


def in_a_line(buttons: Sequence[SafeString]) -> SafeString:
    """Return all of some buttons, side by side."""
    return format_html_join(" ", "{}", ((one,) for one in buttons))


def with_menu(job: Job, buttons: Sequence[SafeString]) -> SafeString:
    """Return the first button, and the others in a menu that opens without JavaScript, too."""
    if len(buttons) < 2:
        return in_a_line(buttons)
    words = _("More actions for {name}").format(name=job.shown_name)
    return format_html("{}{}", buttons[0], format_html(MENU, words, in_a_line(buttons[1:])))


def link_button(job: Job, site: str, page: str, word: str, icon: str) -> SafeString:
    """Return a button that leads to a page of the job."""
    return _button(job, site, page, word, icon, LINK)


def _run_word(job: Job) -> str:
    task = registry.find(job.task)
    return _("Run now…") if task is not None and task.confirm else _("Run now")


def _may_be_run(job: Job) -> bool:
    return job.job_state not in (JobState.ORPHANED, JobState.INVALID) and not (names_no_user(job) or is_carrier(job))


def _button(job: Job, site: str, action: str, word: str, icon: str, shape: str = BUTTON) -> SafeString:
    address = address_of(site, f"job_{action}", job.pk)
    inside = '<span aria-hidden="true">{}</span> {}<span class="sched-sr"> {}</span>'
    return format_html(shape, address, format_html(inside, icon, word, job.shown_name))
