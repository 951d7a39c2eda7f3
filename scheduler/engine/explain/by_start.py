"""By start: the slot is planned, and its start waits for a run, a backoff, jitter or an attempt that was put off."""

from collections.abc import Iterator
from datetime import datetime

from django.utils.translation import gettext as _

from scheduler.engine.explain.evidence import Evidence
from scheduler.engine.explain.explanation import Finding, Verdict
from scheduler.engine.views.datetimes import lasted, said, shifted
from scheduler.engine.views.upcoming import why_put_off
from scheduler.models import Status
from scheduler.models.run import AT_GATE
from scheduler.policy.misfire import RESOLUTION, Misfire, count_slots
from scheduler.policy.overlap import queues
from scheduler.schedules.instants import instant_text


def gate_words(evidence: Evidence) -> Iterator[str]:
    """What the gate said last; it is not asked now, since it may take its time."""
    run = evidence.at_gate
    if run is None:
        return
    text = _("Its gate was closed at its last slot, {at}: {reason}. It is asked again at the next start.")
    if run.status == Status.PENDING:
        text = _("The slot {at} waits for its gate: {reason}. It is asked again at {due}.")
    reason = run.reason.removeprefix(AT_GATE).rstrip(".")
    yield text.format(at=said(run.scheduled_for), reason=reason, due=said(run.due_at))


def going_on(evidence: Evidence) -> Finding | None:
    """A run of the job is going on now."""
    if not evidence.living:
        return None
    run = evidence.living[0]
    text = _("Run {run}, started at {started}, is still going.").format(run=run.pk, started=said(run.started_at))
    return Finding(Verdict.RUNNING, text, details={"running": run.pk})


def busy(evidence: Evidence) -> Finding | None:
    """The run before is still going, and its end decides."""
    if evidence.job.wake_at is not None or not evidence.living:
        return None
    run = evidence.living[0]
    text = _("Run {run}, started at {started}, is still going; {after} (overlap policy {policy}).")
    words = {"run": run.pk, "started": said(run.started_at), **_after_words(evidence)}
    return Finding(Verdict.UNDECIDED, text.format(**words), details={"running": run.pk})


def _kept_by_an_attempt(evidence: Evidence) -> Finding:
    """An attempt that put itself off, or waits for its gate, holds the place of the job."""
    until = evidence.job.postponed_until
    text = _("An attempt that waits until {until} holds the place of the job; {after} (overlap policy {policy}).")
    sentence = " ".join([text.format(until=said(until), **_after_words(evidence)), *gate_words(evidence)])
    return Finding(Verdict.UNDECIDED, sentence, details={"postponed_until": instant_text(until)})


def _after_words(evidence: Evidence) -> dict[str, str]:
    """What becomes of the slots that pass while the job is busy."""
    overlap = evidence.policy.overlap
    if queues(overlap) and evidence.policy.misfire is Misfire.RUN_ALL:
        after = _("afterwards the slots that passed run, the oldest first, at most {most} of them").format(
            most=evidence.policy.max_catch_up
        )
    elif queues(overlap):
        after = _("afterwards the newest slot that passed runs")
    else:
        after = _("at its end the slots that passed by then are recorded as skipped")
    return {"after": after, "policy": overlap.value}


def put_off(evidence: Evidence) -> Finding | None:
    """The start is put off by jitter, by the backoff after a failure, or because the task asked for it."""
    if not is_put_off(evidence):
        return None
    job, slot = evidence.job, evidence.slot_or_now
    start = job.wake_at
    if job.postponed_until is not None and start == job.postponed_until:
        return _kept_by_an_attempt(evidence)
    details = {"start_at": instant_text(start), "consecutive_failures": job.consecutive_failures}
    why = why_put_off(job, slot)
    newest = evidence.schedule.previous_before(shifted(start, RESOLUTION)) if evidence.has_grid else slot
    if newest == slot:
        text = _("It starts at {start}, {wait} from now: {why}.")
        verdict = Verdict.PENDING if slot <= evidence.now else Verdict.WILL_RUN
    elif evidence.policy.misfire is Misfire.RUN_ALL:
        verdict, text = _one_by_one(evidence, newest)
    else:
        text = _(
            "It has no run of its own: the job waits until {start} ({why}), and then one run counts for all slots that"
            " have passed."
        )
        verdict = Verdict.COALESCED
    most = evidence.policy.max_catch_up
    sentence = text.format(start=said(start), wait=lasted(start - evidence.now), why=why, most=most)
    return Finding(verdict, sentence, details=details)


def _one_by_one(evidence: Evidence, newest: datetime | None) -> tuple[Verdict, str]:
    """What the misfire policy that runs every slot makes of those that wait for a start."""
    slot = evidence.slot_or_now
    if newest and count_slots(evidence.schedule, slot, newest) > evidence.policy.max_catch_up:
        return Verdict.MISSED, _(
            "It will not run: the job waits until {start} ({why}), and then max_catch_up lets only {most} of them run."
        )
    verdict = Verdict.PENDING if slot <= evidence.now else Verdict.WILL_RUN
    return verdict, _("The job waits until {start} ({why}), and then its slots run one by one, the oldest first.")


def is_put_off(evidence: Evidence) -> bool:
    job, slot = evidence.job, evidence.slot_or_now
    start, planned = job.wake_at, job.next_run_at
    if start is None or planned is None or start <= evidence.now:
        return False
    return bool(planned < start and planned <= slot <= start)
