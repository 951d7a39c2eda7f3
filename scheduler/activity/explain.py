"""What is said of a job whose runs follow what users do: it has no slots by time, only those in the ledger."""

from collections.abc import Iterator

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from scheduler.activity.api import waiting_users
from scheduler.engine.explain.by_events import pause_now
from scheduler.engine.explain.evidence import Evidence
from scheduler.engine.explain.explanation import Finding, Verdict
from scheduler.engine.views.datetimes import said


def no_run_for_a_user(evidence: Evidence) -> Finding | None:
    """The ledger has no run: no user was due, or due users have not been checked yet."""
    if evidence.slot is not None or not evidence.has_users:
        return None
    verdict = Verdict.PRUNED if evidence.is_pruned else Verdict.NOT_A_SLOT
    return Finding(verdict, " ".join(_sentences(evidence)))


def _sentences(evidence: Evidence) -> Iterator[str]:
    before, after = evidence.nearest_before, evidence.nearest_after
    text = _("The run log has no run for a user at {at}; the nearest are {before} before and {after} after.")
    known = {"before": said(before) if before else _("none"), "after": said(after) if after else _("none")}
    yield text.format(at=said(evidence.at), **known)
    if evidence.is_pruned:
        yield _("It is kept for a limited time, and rows that old may be gone.")
    yield _("This job has no slots by time: {schedule}.").format(schedule=evidence.schedule.describe(_).rstrip("."))
    yield from _now(evidence)


def _now(evidence: Evidence) -> Iterator[str]:
    """The current state, which may be why no user had a run."""
    job, waiting = evidence.job, waiting_users([evidence.job])[evidence.job.name]
    if waiting is None:
        yield _("How many users wait is not known: the store of activities does not answer.")
    else:
        yield ngettext("%d user waits for a run now.", "%d users wait for runs now.", waiting) % waiting
    if job.orphaned_at:
        yield _("Nothing runs it: its task {task} is missing from the code.").format(task=job.task)
    elif not job.enabled:
        yield _("The job is disabled.")
    elif paused := pause_now(evidence):
        yield paused
    elif not evidence.alive:
        yield _("No live instance has its task.")
