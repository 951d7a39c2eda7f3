"""What stops a job, or stopped it then: by whom, since when, why, and what ended that; and what changed since."""

from datetime import datetime

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from scheduler.engine.explain.evidence import Evidence
from scheduler.engine.explain.explanation import Finding, Verdict
from scheduler.engine.explain.past import REPLANS, Stop
from scheduler.engine.plan_basis import probe_from
from scheduler.engine.views.datetimes import said
from scheduler.engine.views.history import actor_words, in_words
from scheduler.models import Group, Job, RunLog, Status, Trigger
from scheduler.models.job_columns import UNABLE
from scheduler.schedules.instants import instant_text


def unreadable(evidence: Evidence) -> Finding | None:
    """A schedule or policy that cannot be read has no slots."""
    if not evidence.problem:
        return None
    return _invalid(evidence.problem)


def was_stopped(evidence: Evidence) -> Finding | None:
    """Something stopped the job then that has ended since."""
    stop = evidence.past.stop_at(evidence.slot or evidence.at, evidence.then.in_group)
    if stop is None or stop.ended is None or evidence.at > evidence.now:
        return None
    words = {
        "what": _what_stopped(stop),
        "since": said(stop.since),
        "ended": said(stop.ended.at),
        "end": stop.ended.get_kind_display(),
        "actor": actor_words(stop.ended.actor),
        "reason": f": {reason.rstrip('.')}" if (reason := stop.begun.reason) else "",
    }
    text = _("{what} from {since} to {ended} ({end} by {actor}){reason}.")
    details = {"event": stop.begun.pk, "ended_at": instant_text(stop.ended.at), "ended_by": stop.ended.pk}
    if stop.verdict is Verdict.BROKEN:
        details["broken_by"] = stop.begun.data.get("run")
    return Finding(stop.verdict, text.format(**words), details=details)


def was_stopped_without_slots(evidence: Evidence) -> Finding | None:
    """The instant is no slot, since what stopped the job then left it without any."""
    return None if evidence.slot is not None or evidence.has_grid else was_stopped(evidence)


def _what_stopped(stop: Stop) -> str:
    begun, actor = stop.begun, actor_words(stop.begun.actor)
    if stop.verdict is Verdict.PAUSED:
        return _("{what} was paused by {actor}").format(what=_paused_what(begun.job_id, begun.name), actor=actor)
    if stop.verdict is Verdict.BROKEN:
        return _("The job was broken by run {run}").format(run=begun.data.get("run", "?"))
    return {
        Verdict.DISABLED: _("The job was disabled by {actor}").format(actor=actor),
        Verdict.ORPHANED: _("Nothing ran the job, whose task was missing from the code,"),
        Verdict.INVALID: _("The job was invalid"),
    }[stop.verdict]


def replanned(evidence: Evidence) -> str:
    """Tell of the event that had the job planned past a slot that nothing had decided on; empty where none did."""
    event = evidence.past.first_after(evidence.slot_or_now, REPLANS)
    if event is None or (evidence.following and evidence.following.scheduled_for < event.at):
        return ""
    text = _("Nothing had decided on it when the job was planned afresh, because of this event: {event}.")
    return text.format(event=str(in_words(event).without_kwargs()).rstrip("."))


def schedule_note(asked: Evidence) -> str:
    """Tell of the edit of the schedule next to an instant of the past that has no slot: it may have been one before."""
    if asked.at >= asked.now:
        return ""
    edits = list(asked.past.schedule_changes())
    before = [one for one in edits if one.at <= asked.at][-1:]
    return " ".join(
        _("The schedule of the job changed: {event}.").format(event=str(in_words(one).without_kwargs()).rstrip("."))
        for one in [*before, *[one for one in edits if one.at > asked.at][:1]]
    )


def stopped_now(evidence: Evidence) -> Finding | None:
    """The instant is no slot, and the job is stopped now: that is what people want to know."""
    return None if evidence.slot is not None else stopped(evidence)


def stopped(evidence: Evidence) -> Finding | None:
    """The job is stopped now, and nothing decided on the slot before it was."""
    return _orphaned(evidence) or _set_aside(evidence) or _broken(evidence) or _paused(evidence)


def stops_now(evidence: Evidence) -> Finding | None:
    """What stops the job now, whatever became of the slot that is asked about; that of a probe is to end a break."""
    stop = stopped(evidence.of_now())
    is_next = evidence.slot is not None and evidence.slot == evidence.job.next_run_at
    return None if stop is not None and stop.verdict is Verdict.BROKEN and is_next else stop


def _orphaned(evidence: Evidence) -> Finding | None:
    job = evidence.job
    if not job.orphaned_at:
        return None
    text = _("Nothing runs it: its task {task} is missing from the code since {since}. {problem}")
    words = {"task": job.task, "since": said(job.orphaned_at), "problem": job.problem}
    sentence = f"{text.format(**words).strip()}{_due_before(evidence, job.orphaned_at)}"
    return Finding(Verdict.ORPHANED, sentence, details={"problem": job.problem})


def _set_aside(evidence: Evidence) -> Finding | None:
    job = evidence.job
    if job.problem:
        return _invalid(job.problem)
    if job.enabled:
        return None
    stop = evidence.past.stop_at(evidence.now, job.in_group)
    if stop is None or stop.verdict is not Verdict.DISABLED:
        return Finding(Verdict.DISABLED, _("The job is disabled."))
    text = _("The job is disabled by {actor} since {since}.")
    words = {"actor": actor_words(stop.begun.actor), "since": said(stop.since)}
    sentence = text.format(**words) + _due_before(evidence, stop.since)
    return Finding(Verdict.DISABLED, sentence, details={"event": stop.begun.pk})


def _invalid(problem: str) -> Finding:
    text = _("The job cannot be planned until its definition is mended: {problem}")
    if problem.startswith(UNABLE):
        text = _("{problem} It stays due, and every process tries it again within a minute.")
    return Finding(Verdict.INVALID, text.format(problem=problem), details={"problem": problem})


def _broken(evidence: Evidence) -> Finding | None:
    job = evidence.job
    if not job.broken_at or (evidence.slot is not None and evidence.slot == job.next_run_at):
        return None  # the slot of a probe is planned although the job is broken
    words = {"since": said(job.broken_at), "failures": job.consecutive_failures}
    text = ngettext(
        "The job is broken since {since}, after {failures} failure; it runs again when it is reset.",
        "The job is broken since {since}, after {failures} failures in a row; it runs again when it is reset.",
        job.consecutive_failures,
    )
    sentence = text.format(**words)
    if probe := probe_from(job):
        sentence += " " + _("A probe from {at} on lets it go on, too, if it succeeds.").format(at=said(probe))
    details = {"broken_at": instant_text(job.broken_at), "consecutive_failures": job.consecutive_failures}
    return Finding(Verdict.BROKEN, sentence + _due_before(evidence, job.broken_at), details=details)


def _paused(evidence: Evidence) -> Finding | None:
    return next((_pause_finding(evidence, stop) for stop in _stops_at(evidence, evidence.slot_or_now)), None)


def pause_that_holds(evidence: Evidence, run: RunLog) -> str:
    """What pause a promised attempt waits for the end of, in words; empty when none holds it."""
    if run.status != Status.PENDING or run.trigger == Trigger.MANUAL:
        return ""
    stops = _stops_at(evidence, max(evidence.now, run.due_at or evidence.now))
    # A pause of the job itself cancels what its plan had promised.
    holding = (stop for stop in stops if run.cause.waits or isinstance(stop, Group))
    return next((_pause_words(stop) for stop in holding), "")


def pause_now(evidence: Evidence) -> str:
    """What pause holds the job now, in words; empty when none does."""
    return next((_pause_words(stop) for stop in _stops_at(evidence, evidence.now)), "")


def _stops_at(evidence: Evidence, at: datetime) -> list[Job | Group]:
    """Return the pauses that are not over at an instant, that of the job itself first."""
    stops: list[Job | Group] = [*([evidence.job] if evidence.job.paused_at else []), *evidence.paused_groups]
    return [stop for stop in stops if stop.paused_until is None or at < stop.paused_until]


def _paused_what(job: int | None, name: str) -> str:
    if job is not None:
        return _("The job")
    return _("The group {group} of the job").format(group=name) if name else _("The whole scheduler")


def _pause_words(stop: Job | Group) -> str:
    words = {
        "what": _paused_what(None if isinstance(stop, Group) else stop.pk, stop.name),
        "since": said(stop.paused_at),
        "until": _("until {until}").format(until=said(stop.paused_until)) if stop.paused_until else _("until resumed"),
        "actor": stop.paused_by or _("code that names no user"),
        "reason": f": {stop.pause_reason.rstrip('.')}" if stop.pause_reason else "",
    }
    return _("{what} is paused by {actor} since {since}, {until}{reason}.").format(**words)


def _pause_finding(evidence: Evidence, stop: Job | Group) -> Finding:
    details = {
        "paused_at": instant_text(stop.paused_at),
        "paused_until": instant_text(stop.paused_until) if stop.paused_until else None,
        "paused_by": stop.paused_by,
        "pause_reason": stop.pause_reason,
        "group": stop.name if isinstance(stop, Group) else None,
    }
    return Finding(Verdict.PAUSED, _pause_words(stop) + _due_before(evidence, stop.paused_at), details=details)


def _due_before(evidence: Evidence, since: datetime) -> str:
    """The slot is older than the stop: it passed while the run before was going, or while nothing was alive."""
    return (
        " " + _("The slot passed before that, and nothing had decided on it.") if evidence.slot_or_now < since else ""
    )
