"""How states look: an icon and a word for each, never a colour alone."""

from datetime import datetime

from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext

from scheduler.engine.held import pause_words, state_of
from scheduler.models import UNPLANNED, Group, Job, JobState, RunLog, Status, Trigger
from scheduler.models.fields import Unreadable

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
    Status.TIMED_OUT: "⏱",
    Status.SKIPPED: "↷",
    Status.MISSED: "∅",
    Status.CANCELLED: "■",
    Status.POSTPONED: "⤼",
    Status.LOST: "☇",
}
STOPPED = (JobState.PAUSED, JobState.BROKEN, JobState.DISABLED, JobState.FINISHED, JobState.ORPHANED, JobState.INVALID)
STUCK, OVERDUE, FAILING = _("stuck"), _("overdue"), _("failing")


def is_going(job: Job) -> bool:
    """Return whether the schedule of a job starts it: it can be read, and nothing stops it."""
    unreadable = isinstance(job.schedule, Unreadable) or isinstance(job.policy, Unreadable)
    return not unreadable and job.job_state not in STOPPED


def next_start(job: Job, held: Group | None = None) -> datetime | None:
    """Return when a job starts next, for a broken one its probe; None when nothing is planned or it is held."""
    start: datetime | None = job.next_start_at
    if held or job.job_state in STOPPED:
        return start if job.job_state == JobState.BROKEN and start != UNPLANNED else None
    return job.next_slot if start in (None, UNPLANNED) else start


def badge(tone: str, icon: str, word: object, title: object = "") -> SafeString:
    """Return an icon and a word in a tone; the icon is hidden from screen readers, which have the word."""
    return format_html(
        '<span class="sched-badge sched-{}" title="{}"><span aria-hidden="true">{}</span> {}</span>',
        tone,
        title,
        icon,
        word,
    )


def job_badge(job: Job, held: Group | None = None) -> SafeString:
    """Return the state of a job, which a group may hold; the title says why."""
    state = state_of(job, held)
    return badge(TONES[state], ICONS[state], state.label, why(job, held))


def why(job: Job, held: Group | None = None) -> str:
    """Return the reason of a state, as far as the job and the group that holds it know it."""
    if job.problem:
        return str(job.problem)
    if job.broken_at:
        failures = job.consecutive_failures
        return ngettext("%d failure in a row", "%d failures in a row", failures) % failures
    if job.paused_at:
        return ": ".join(filter(None, (job.paused_by, job.pause_reason)))
    if held:
        return pause_words(held)
    return str(getattr(job.schedule, "error", ""))


def run_badge(status: str) -> SafeString:
    """Return the status of a run."""
    return badge(RUN_TONES.get(status, "quiet"), RUN_ICONS.get(status, "·"), dict(Status.choices).get(status, status))


def run_actor(run: RunLog) -> str:
    """Return who asked for a run, or for which user it is; empty when neither applies."""
    return _("user {key}").format(key=run.actor) if run.actor and run.trigger == Trigger.ACTIVITY else run.actor


def run_summary(run: RunLog, length: int = 100) -> str:
    """Return the reason, the last line of the error, or the result, in one line."""
    text = run.reason or run.error.rstrip().rpartition("\n")[2] or run.result
    return text if len(text) <= length else text[: length - 1] + "…"
