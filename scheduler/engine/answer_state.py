"""What the state of a job says about a slot: stopped by whom, since when, why."""

from datetime import datetime

from django.utils.translation import gettext as _

from scheduler.engine.evidence import Evidence
from scheduler.engine.explanation import Finding, Verdict
from scheduler.engine.moments import said
from scheduler.models import PATIENT, Group, Job, RunLog, Status, Trigger


def unreadable(evidence: Evidence) -> Finding | None:
    """A schedule or policy that cannot be read has no slots."""
    if not evidence.problem:
        return None
    return _invalid(evidence.problem)


def stopped(evidence: Evidence) -> Finding | None:
    """The job is stopped now, and nothing decided on the slot before it was."""
    job = evidence.job
    if job.orphaned_at:
        text = _("Nothing runs it: its task {task} is missing from the code since {since}. {problem}")
        words = {"task": job.task, "since": said(job.orphaned_at), "problem": job.problem}
        sentence = f"{text.format(**words).strip()}{_due_before(evidence, job.orphaned_at)}"
        return Finding(Verdict.ORPHANED, sentence, details={"problem": job.problem})
    if job.problem:
        return _invalid(job.problem)
    if not job.enabled:
        return Finding(Verdict.DISABLED, _("The job is disabled; since when is not recorded."))
    return _broken(evidence) or _paused(evidence)


def _invalid(problem: str) -> Finding:
    text = _("The job cannot be planned until its definition is mended: {problem}")
    return Finding(Verdict.INVALID, text.format(problem=problem), details={"problem": problem})


def _broken(evidence: Evidence) -> Finding | None:
    job = evidence.job
    if not job.broken_at or evidence.slot == job.next_slot:
        return None  # the slot of a probe is planned although the job is broken
    text = _("The job is broken since {since}, after {failures} failures in a row; it runs again when it is reset.")
    words = {"since": said(job.broken_at), "failures": job.consecutive_failures}
    details = {"broken_at": job.broken_at.isoformat(), "consecutive_failures": job.consecutive_failures}
    return Finding(Verdict.BROKEN, text.format(**words) + _due_before(evidence, job.broken_at), details=details)


def _paused(evidence: Evidence) -> Finding | None:
    return next((_pause_finding(evidence, stop) for stop in _stops_at(evidence, _slot(evidence))), None)


def pause_that_holds(evidence: Evidence, run: RunLog) -> str:
    """What pause a promised attempt waits for the end of, in words; empty when none holds it."""
    if run.status != Status.PENDING or run.trigger == Trigger.MANUAL:
        return ""
    stops = _stops_at(evidence, max(evidence.now, run.due_at or evidence.now))
    # A pause of the job itself cancels what its plan had promised.
    holding = (stop for stop in stops if run.trigger in PATIENT or isinstance(stop, Group))
    return next((_pause_words(stop) for stop in holding), "")


def pause_now(evidence: Evidence) -> str:
    """What pause holds the job now, in words; empty when none does."""
    return next((_pause_words(stop) for stop in _stops_at(evidence, evidence.now)), "")


def _stops_at(evidence: Evidence, at: datetime) -> list[Job | Group]:
    """Return the pauses that are not over at an instant, that of the job itself first."""
    stops: list[Job | Group] = [*([evidence.job] if evidence.job.paused_at else []), *evidence.paused_groups]
    return [stop for stop in stops if stop.paused_until is None or at < stop.paused_until]


def _pause_words(stop: Job | Group) -> str:
    what = _("The job")
    if isinstance(stop, Group):
        what = _("The group {group} of the job").format(group=stop.name) if stop.name else _("The whole scheduler")
    words = {
        "what": what,
        "since": said(stop.paused_at),
        "until": _("until {until}").format(until=said(stop.paused_until)) if stop.paused_until else _("until resumed"),
        "actor": stop.paused_by or _("somebody"),
        "reason": f": {stop.pause_reason.rstrip('.')}" if stop.pause_reason else "",
    }
    return _("{what} is paused by {actor} since {since}, {until}{reason}.").format(**words)


def _pause_finding(evidence: Evidence, stop: Job | Group) -> Finding:
    details = {
        "paused_at": stop.paused_at.isoformat(),
        "paused_until": stop.paused_until.isoformat() if stop.paused_until else None,
        "paused_by": stop.paused_by,
        "pause_reason": stop.pause_reason,
        "group": stop.name if isinstance(stop, Group) else None,
    }
    return Finding(Verdict.PAUSED, _pause_words(stop) + _due_before(evidence, stop.paused_at), details=details)


def _due_before(evidence: Evidence, since: datetime) -> str:
    """The slot is older than the stop: it passed while the run before was going, or while nothing was alive."""
    return " " + _("The slot passed before that, and nothing had decided on it.") if _slot(evidence) < since else ""


def _slot(evidence: Evidence) -> datetime:
    assert evidence.slot is not None, "an instant that is no slot was answered before"
    return evidence.slot
