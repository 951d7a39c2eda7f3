"""Explain: why a job ran, did not run, or will run at an instant. Reads only, with a constant number of queries."""

from datetime import datetime, timedelta
from typing import Any

from django.utils.translation import gettext as _

from scheduler.arguments import checked_instant, optional_instant
from scheduler.engine import answer_ledger, answer_plan, answer_state, answer_users
from scheduler.engine.base import Engine
from scheduler.engine.control import get_job
from scheduler.engine.dbtime import shared_now
from scheduler.engine.evidence import Evidence
from scheduler.engine.explanation import Explanation, Finding, Question, Verdict
from scheduler.engine.moments import parse_moment, said, shifted
from scheduler.exceptions import InvalidOption
from scheduler.models import Job
from scheduler.schedules.base import NO_TIME, naive_utc
from scheduler.schedules.wall_schedule import WallSchedule
from scheduler.schedules.wallclock import changes_between, zone_of

__all__ = ["Explanation", "Verdict", "explain_slot", "parse_moment"]

MINUTE, SECOND = timedelta(minutes=1), timedelta(seconds=1)
NEAR_CHANGE = timedelta(hours=3)
"""A change of the clock this close to the instant is mentioned: none moves it further, but for two in history."""

QUESTIONS: tuple[Question, ...] = (
    answer_ledger.recorded,
    answer_ledger.counted,
    answer_state.unreadable,
    answer_users.no_run_for_a_user,
    answer_plan.not_a_slot,
    answer_plan.before_creation,
    answer_plan.decided_before,
    answer_state.stopped,
    answer_plan.outside_plan,
    answer_plan.to_come,
    answer_plan.busy,
    answer_plan.put_off,
    answer_plan.nobody_there,
    answer_plan.waiting,
)
"""Asked in this order; the first that finds something answers."""


def explain_slot(
    job: Job | str, at: datetime, *, now: datetime | None = None, tolerance: timedelta | None = None
) -> Explanation:
    """Say what became, or will become, of the slot of a job at an instant, past or future.

    The first slot in `at <= slot < at + tolerance` is meant. The default follows how precisely `at` was given: a minute
    for full minutes, else a second. There is no record of past pauses, resets and edits of a job: where the ledger
    cannot know, the sentence says what is known. Raises UnknownJob, and InvalidOption for a naive `at`.
    """
    at = checked_instant("at", at)
    if tolerance is None:
        tolerance = SECOND if at.second or at.microsecond else MINUTE
    elif not isinstance(tolerance, timedelta) or tolerance <= NO_TIME:
        raise InvalidOption(f"tolerance is {tolerance!r}; it must be a timedelta longer than zero.")
    evidence = Evidence(
        job=job if isinstance(job, Job) else get_job(job),
        at=at,
        until=shifted(at, tolerance),
        now=optional_instant("now", now) or shared_now(Engine().using),
    )
    found = (question(evidence) for question in QUESTIONS)
    return _explanation(evidence, next(finding for finding in found if finding is not None))


def _explanation(evidence: Evidence, finding: Finding) -> Explanation:
    clock, by_hand = _clock_note(evidence), [run.pk for run in evidence.by_hand]
    notes = [finding.sentence, _("Mind the clock: {note}.").format(note=clock) if clock else "", _by_hand(evidence)]
    details: dict[str, Any] = finding.details | ({"by_hand": by_hand} if by_hand else {})
    return Explanation(
        verdict=finding.verdict,
        sentence=" ".join(filter(None, notes)),
        job=evidence.job.name,
        at=evidence.at,
        run=finding.run,
        slot=evidence.slot,
        nearest_before=evidence.nearest_before,
        nearest_after=evidence.nearest_after,
        details=details | ({"clock": clock} if clock else {}),
    )


def _by_hand(evidence: Evidence) -> str:
    if not evidence.by_hand:
        return ""
    runs = ", ".join(
        _("run {run} at {at} by {actor} ({status})").format(
            run=run.pk,
            at=said(run.scheduled_for),
            actor=run.actor or _("somebody"),
            status=run.get_status_display(),
        )
        for run in evidence.by_hand[:3]
    )
    return _("Started by hand near that time: {runs}.").format(runs=runs)


def _clock_note(evidence: Evidence) -> str:
    """What a change of the clock has to do with the answer, in words."""
    if evidence.problem or not isinstance(evidence.schedule, WallSchedule):
        return ""
    slots = [evidence.slot] if evidence.slot else [evidence.nearest_before, evidence.nearest_after]
    near = [slot for slot in slots if slot is not None and abs(slot - evidence.at) <= NEAR_CHANGE]
    notes = (evidence.schedule.dst_note(slot, _) for slot in near)
    return next(filter(None, notes), "") or _gap_note(evidence, evidence.schedule)


def _gap_note(evidence: Evidence, schedule: WallSchedule) -> str:
    """A wall time inside a gap was read as the first instant after it, where a wildcard schedule has nothing to say."""
    if evidence.slot is not None:
        return ""
    zone = zone_of(schedule.timezone or "UTC")
    start, end = naive_utc(shifted(evidence.at, -SECOND)), naive_utc(evidence.until)
    gap = next((change for change in changes_between(zone, start, end) if change.is_gap), None)
    if gap is None:
        return ""
    return _("the times from {first} to {last} did not exist on that day").format(
        first=f"{gap.first_wall:%H:%M}", last=f"{gap.last_wall:%H:%M}"
    )
