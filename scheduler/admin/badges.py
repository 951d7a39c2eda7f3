"""How states look: an icon and a word for each, never a colour alone."""

from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext

from scheduler.engine.views.job_view import JobView
from scheduler.models import JobState, RunLog, Status, Trigger

TONES = {
    JobState.SCHEDULED: "calm",
    JobState.RUNNING: "busy",
    JobState.PAUSED: "warn",
    JobState.BROKEN: "bad",
    JobState.DISABLED: "quiet",
    JobState.FINISHED: "good",
    JobState.ORPHANED: "warn",
    JobState.INVALID: "bad",
}
ICONS = {
    JobState.SCHEDULED: "◷",
    JobState.RUNNING: "▶",
    JobState.PAUSED: "❚❚",
    JobState.BROKEN: "✖",
    JobState.DISABLED: "○",
    JobState.FINISHED: "✔",
    JobState.ORPHANED: "?",
    JobState.INVALID: "⚠",
}
RUN_TONES: dict[str, str] = {
    Status.PENDING: "calm",
    Status.RUNNING: "busy",
    Status.SUCCEEDED: "good",
    Status.FAILED: "bad",
    Status.TIMED_OUT: "bad",
    Status.SKIPPED: "quiet",
    Status.MISSED: "warn",
    Status.CANCELLED: "quiet",
    Status.POSTPONED: "calm",
    Status.LOST: "bad",
}
RUN_ICONS: dict[str, str] = {
    Status.PENDING: "…",
    Status.RUNNING: "▶",
    Status.SUCCEEDED: "✔",
    Status.FAILED: "✖",
    Status.TIMED_OUT: "◴",
    Status.SKIPPED: "↷",
    Status.MISSED: "∅",
    Status.CANCELLED: "■",
    Status.POSTPONED: "⤼",
    Status.LOST: "☇",
}
ATTENTION = {
    "stuck": ("bad", "⊘", _("stuck")),
    "overdue": ("warn", "⚠", _("overdue")),
    "failing": ("bad", "↯", _("failing")),
    "not_fresh": ("bad", "⚐", _("success overdue")),
    "deadline_missed": ("bad", "⚑", _("deadline missed")),
    "slower": ("warn", "◔", _("slower than usual")),
}
"""What its state does not tell of a job."""


def badge(tone: str, icon: str, word: object, title: object = "") -> SafeString:
    """Return an icon and a word in a tone; the icon is hidden from screen readers, which have the word."""
    return format_html(
        '<span class="sched-badge sched-{}" title="{}"><span aria-hidden="true">{}</span> {}</span>',
        tone,
        title,
        icon,
        word,
    )


def labelled(label: object, content: object) -> SafeString:
    """Return the content of a cell with what the head of its column says, for screens that have no room for a head."""
    return format_html(
        '<span class="sched-said" aria-hidden="true">{}</span><div class="sched-cell">{}</div>', label, content
    )


def job_badge(view: JobView) -> SafeString:
    """Return the state of a job; the title says why."""
    return badge(TONES[view.state], ICONS[view.state], view.state.label, view.reason)


def attention_badge(view: JobView) -> SafeString:
    """Return why a person should look at a job, where its state does not tell."""
    return badge(*ATTENTION[view.attention]) if view.attention in ATTENTION else SafeString()


def run_badge(status: str, errors: int = 0) -> SafeString:
    """Return the status of a run; one that succeeded with errors looks like what it is."""
    if status == Status.SUCCEEDED and errors:
        return badge("warn", "⚠", run_word(status, errors))
    return badge(RUN_TONES.get(status, "quiet"), RUN_ICONS.get(status, "·"), run_word(status))


def badge_of(run: RunLog) -> SafeString:
    """Return the status of a run, and of one that lives on after a cancel that it is stopping."""
    if run.is_living and run.stop_requested_at:
        return badge("warn", "■", _("stopping…"))
    return run_badge(run.status, run.errors)


def open_badge(run: RunLog) -> SafeString:
    """Return how an open run stands: that it is stuck comes before its status."""
    return badge(*ATTENTION["stuck"]) if run.is_living and run.stuck_at else badge_of(run)


def run_word(status: str, errors: int = 0) -> str:
    """Return the status of a run in words, such as “succeeded with 3 errors”."""
    if status == Status.SUCCEEDED and errors:
        return ngettext("succeeded with %d error", "succeeded with %d errors", errors) % errors
    return str(dict(Status.choices).get(status, status))


def run_tone(run: RunLog) -> str:
    """Return the tone of a run in pictures."""
    return "warn" if run.status == Status.SUCCEEDED and run.errors else RUN_TONES.get(run.status, "quiet")


def run_actor(run: RunLog) -> str:
    """Return who asked for a run, or for which user it is; empty when neither applies."""
    return _("user {key}").format(key=run.actor) if run.actor and run.trigger == Trigger.ACTIVITY else run.actor


def run_summary(run: RunLog, length: int = 100) -> str:
    """Return the reason, the last line of the error, or the result, in one line."""
    text = run.reason or run.error.rstrip().rpartition("\n")[2] or run.result
    return text if len(text) <= length else text[: length - 1] + "…"
