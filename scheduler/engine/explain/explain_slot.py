"""Explain: why a job ran, did not run, or will run at an instant. Reads only, with a constant number of queries."""

from datetime import datetime, timedelta
from typing import Any

from django.utils.module_loading import import_string
from django.utils.translation import gettext as _

from scheduler.arguments import checked_instant, optional_instant
from scheduler.engine.base import Engine
from scheduler.engine.control import job_once_named
from scheduler.engine.db.shared_time import shared_now
from scheduler.engine.explain import by_events, by_ledger, by_plan, by_start
from scheduler.engine.explain.evidence import Evidence
from scheduler.engine.explain.explanation import Explanation, Finding, Question, Verdict
from scheduler.engine.views.datetimes import parse_moment, said, shifted, zone_of_schedule
from scheduler.exceptions import InvalidOption
from scheduler.models import Job, RunLog
from scheduler.safetext import shown
from scheduler.schedules.base import NO_TIME, naive_utc
from scheduler.schedules.wall_schedule import WallSchedule
from scheduler.schedules.wallclock import changes_between, zone_of

__all__ = ["Explanation", "Verdict", "explain_slot", "explain_text", "parse_moment"]

MINUTE, SECOND = timedelta(minutes=1), timedelta(seconds=1)
NEAR_CHANGE = timedelta(hours=3)
"""A change of the clock this close to the instant is mentioned: none moves it further, but for two in history."""

OF_THE_LEDGER: tuple[Question, ...] = (by_ledger.recorded, by_ledger.counted, by_events.unreadable)
OF_OTHER_PACKAGES = ("scheduler.activity.explain.no_run_for_a_user",)
"""What packages above the engine know of the jobs whose runs they bring, by name: only those who ask import them."""
OF_THE_PLAN: tuple[Question, ...] = (
    by_plan.before_creation,
    by_events.stopped_now,
    by_events.was_stopped_without_slots,
    by_plan.not_a_slot,
    by_events.was_stopped,
    by_plan.decided_before,
    by_events.stopped,
    by_plan.outside_plan,
    by_plan.to_come,
    by_start.busy,
    by_start.put_off,
    by_plan.no_instance,
    by_plan.waiting,
)
"""All are asked in this order; the first that finds something answers."""


def explain_slot(
    job: Job | str, at: datetime, *, now: datetime | None = None, tolerance: timedelta | None = None
) -> Explanation:
    """Say what became, or will become, of the slot of a job at an instant, past or future.

    The answer is about the first slot in `at <= slot < at + tolerance`. The default tolerance follows how precisely
    `at` is given: a minute for full minutes, else a second. With that default, an instant without a slot is answered
    for the nearest slot, and the sentence says so: of the two slots around it the nearer one, or the only one there is
    if it is within a minute. A slot of the past is judged by the schedule that the job had then, and by what stopped
    it then. `job` may be a name that it had before. Raises UnknownJob, and InvalidOption for a naive `at`.
    """
    at = checked_instant("at", at)
    job = job if isinstance(job, Job) else job_once_named(job)
    asked = Evidence(
        job=job,
        at=at,
        until=shifted(at, _precision(at) if tolerance is None else _checked_tolerance(tolerance)),
        now=optional_instant("now", now) or shared_now(Engine().using),
    )
    evidence = _meant(asked) if tolerance is None else asked
    found = (question(evidence) for question in _questions())
    return _explanation(evidence, next(finding for finding in found if finding is not None), asked)


def _questions() -> tuple[Question, ...]:
    return *OF_THE_LEDGER, *map(import_string, OF_OTHER_PACKAGES), *OF_THE_PLAN


def _precision(at: datetime) -> timedelta:
    return SECOND if at.second or at.microsecond else MINUTE


def _checked_tolerance(tolerance: timedelta) -> timedelta:
    if not isinstance(tolerance, timedelta) or tolerance <= NO_TIME:
        raise InvalidOption(f"tolerance is {shown(tolerance)}; it must be a timedelta longer than zero.")
    return tolerance


def explain_text(job: Job, text: str, *, now: datetime | None = None) -> Explanation:
    """Answer as `explain_slot` does, of a time as a person writes it: without a zone it is one of the job's own.

    An empty text, and `now`, ask what keeps the job from running now. Raises InvalidOption that says what to write.
    """
    now = optional_instant("now", now) or shared_now(Engine().using)
    if text.strip().lower() not in ("", "now"):
        return explain_slot(job, parse_moment(text, now, zone_of_schedule(job.schedule)), now=now)
    if job.schedule.for_users:
        return explain_slot(job, now, now=now)
    slot, evidence = job.next_run_at, Evidence(job=job, at=now, until=now, now=now)
    now_asked = (by_events.unreadable, by_events.stopped_now, by_start.going_on, by_ledger.handed_over)
    finding = next(filter(None, (question(evidence) for question in now_asked)), None)
    if finding is not None or slot is None:
        return _explanation(evidence, finding or by_plan.nothing_to_come(evidence), evidence)
    return explain_slot(job, slot, now=now, tolerance=SECOND)


def _meant(asked: Evidence) -> Evidence:
    """Return the evidence of the nearest slot if the instant asked about has none."""
    if asked.problem or asked.has_users or asked.slot is not None:
        return asked
    nearest = _nearest(asked)
    if nearest is None:
        return asked
    if asked.job.created_at and nearest < asked.job.created_at <= asked.at:
        return asked  # the job had no slot yet
    return asked.moved(nearest)


def _nearest(asked: Evidence) -> datetime | None:
    """Return the nearer of the slots around an instant; one that is alone there must be near."""
    around = [slot for slot in (asked.nearest_before, asked.nearest_after) if slot is not None]
    nearest = min(around, key=lambda slot: abs(slot - asked.at), default=None)
    # The nearer of two slots is never further away than half the gap between them.
    is_far = len(around) == 1 and abs(around[0] - asked.at) > MINUTE
    return None if is_far else nearest


def _explanation(evidence: Evidence, finding: Finding, asked: Evidence) -> Explanation:
    clock = _clock_note(asked) or _clock_note(evidence)
    by_hand = list({run.pk: run for run in [*asked.by_hand, *evidence.by_hand]}.values())
    beside = [_("Mind the clock: {note}.").format(note=clock) if clock else "", _by_hand(by_hand), _name_then(asked)]
    details: dict[str, Any] = finding.details | ({"by_hand": [run.pk for run in by_hand]} if by_hand else {})
    return Explanation(
        verdict=finding.verdict,
        sentence=" ".join(filter(None, [*_sentences(evidence, finding, asked), *beside])),
        job=evidence.job.name,
        at=asked.at,
        run=finding.run,
        slot=evidence.slot,
        nearest_before=evidence.nearest_before,
        nearest_after=evidence.nearest_after,
        details=details | ({"clock": clock} if clock else {}),
    )


def _sentences(evidence: Evidence, finding: Finding, asked: Evidence) -> list[str]:
    """Return what stops the job now, and what was found; of another slot than the one asked about, also that it is."""
    meant = "" if evidence is asked else by_plan.nearest_is_meant(asked, evidence.slot)
    stop = by_events.stops_now(evidence)
    if stop is None:
        return [meant, finding.sentence]
    if stop.verdict == finding.verdict and "ended_at" not in finding.details:
        return [finding.sentence, meant]
    return [stop.sentence, meant, finding.sentence.replace(f" {stop.sentence}", "")]


def _name_then(asked: Evidence) -> str:
    if asked.then.name == asked.job.name:
        return ""
    return _("The job was called {name} then.").format(name=asked.then.name)


def _by_hand(runs: list[RunLog]) -> str:
    if not runs:
        return ""
    newest = list({run.scheduled_for: run for run in runs}.values())  # of the attempts of one start
    words = ", ".join(
        _nth(run).format(
            run=run.pk,
            attempt=run.attempt,
            at=said(run.scheduled_for),
            actor=run.actor or _("code that names no user"),
            status=run.get_status_display(),
        )
        for run in newest[:3]
    )
    return _("Started by hand near that time: {runs}.").format(runs=words)


def _nth(run: RunLog) -> str:
    if run.attempt > 1:
        return _("run {run} at {at} by {actor} ({status}, attempt {attempt})")
    return _("run {run} at {at} by {actor} ({status})")


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
