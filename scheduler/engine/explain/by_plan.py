"""What the plan of a job says about a slot that has no row: not one at all, to come, late, or past without a trace."""

from collections.abc import Iterator
from datetime import datetime, timedelta

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from scheduler.engine.explain.by_events import replanned, schedule_note
from scheduler.engine.explain.by_start import gate_words, is_put_off, put_off
from scheduler.engine.explain.evidence import Evidence
from scheduler.engine.explain.explanation import Finding, Verdict
from scheduler.engine.plan import Plan, missing_parents
from scheduler.engine.plan_basis import jitter_of, slots_begin
from scheduler.engine.replan import ends_of_parents, waiting_attempts
from scheduler.engine.views.datetimes import lasted, said, shifted, zone_of_schedule
from scheduler.engine.views.history import actor_words, in_words
from scheduler.models import EventKind, Job, JobState
from scheduler.policy.misfire import RESOLUTION
from scheduler.registry import registry
from scheduler.schedules import Slots
from scheduler.schedules.instants import instant_text


def not_a_slot(evidence: Evidence) -> Finding | None:
    """The schedule has no slot there."""
    if evidence.slot is not None:
        return None
    before, after = evidence.nearest_before, evidence.nearest_after
    text = _("{at} is not a slot of this job ({schedule}). The nearest are {before} before and {after} after.")
    words = {
        "at": said(evidence.at),
        "schedule": evidence.schedule.describe(_),
        "before": said(before) if before else _("none"),
        "after": said(after) if after else _("none"),
    }
    return Finding(Verdict.NOT_A_SLOT, " ".join(filter(None, (text.format(**words), schedule_note(evidence)))))


def nearest_is_meant(asked: Evidence, nearest: datetime | None) -> str:
    """Say, by the clock of the job, that the instant is no slot and which slot the answer is about."""
    text = _("{at} is not a slot of this job ({schedule}); this is about the nearest one, {nearest}.")
    zone = zone_of_schedule(asked.schedule)
    schedule = asked.schedule.describe(_).rstrip(".")
    meant = text.format(at=said(asked.at, zone), schedule=schedule, nearest=said(nearest, zone))
    return " ".join(filter(None, (meant, schedule_note(asked))))


def before_creation(evidence: Evidence) -> Finding | None:
    """The job did not exist yet."""
    job, at = evidence.job, evidence.slot or evidence.at
    if not job.created_at or at >= job.created_at or at == job.next_run_at:
        return None
    text, creation = _("The job did not exist yet: it was created at {created}."), evidence.past.creation()
    if creation is not None:
        text = _("The job did not exist yet: it was created by {actor} at {created}.")
    words = {"created": said(job.created_at), "actor": actor_words(creation.actor) if creation else ""}
    return Finding(Verdict.BEFORE_CREATION, text.format(**words))


def decided_before(evidence: Evidence) -> Finding | None:
    """Later slots have been claimed, so this one will not run any more, though no row tells what became of it.

    Nothing stopped the job at the time.
    """
    job, slot = evidence.job, evidence.slot_or_now
    if not job.last_slot or slot > job.last_slot:
        return None
    if evidence.is_pruned:
        text = _("Its row is gone: the run log is kept for a limited time, and no row of its kind is that old.")
        if cleared := evidence.past.first_after(slot, frozenset({EventKind.CLEARED})):
            text = _("Its row may have been removed: {event}.").format(event=str(in_words(cleared)))
        return Finding(Verdict.PRUNED, text)
    if told := replanned(evidence):
        return Finding(Verdict.NOT_PLANNED, told)
    since = evidence.past.pruned_until()
    if since and slot <= since:
        text = _("The run log has no row for it, and the history before {date} has been pruned.")
        return Finding(Verdict.PRUNED, text.format(date=said(since)))
    text = _("The run log has no row for it, later slots have been claimed, and the history tells of no cause.")
    if job.anchor_at and slot <= job.anchor_at:
        text = _("Nothing had planned the job by then: the first process did at {at}, from then on.")
        return Finding(Verdict.NOT_PLANNED, text.format(at=said(job.anchor_at)))
    return Finding(Verdict.NOT_PLANNED, text)


def outside_plan(evidence: Evidence) -> Finding | None:
    """The job is planned past the slot, or has no plan."""
    job, slot = evidence.job, evidence.slot_or_now
    limit = _limit_words(evidence)
    if limit:
        return Finding(Verdict.NOT_PLANNED, limit)
    if job.stale:
        return None if _still_counts(evidence) else _replanned(evidence)
    if job.paused_at or (job.next_run_at is not None and job.next_run_at <= slot):
        return None  # the pause ends before the slot
    if job.next_run_at is None:
        return Finding(Verdict.NOT_PLANNED, _no_further_slot(job) if job.last_slot else _("It has no slot yet."))
    text = _("The job is planned past it: its next slot is {next}.").format(next=said(job.next_run_at))
    return Finding(Verdict.NOT_PLANNED, " ".join(filter(None, (text, replanned(evidence)))))


def _no_further_slot(job: Job) -> str:
    return _("The job has no further slot; its last one was {last}.").format(last=said(job.last_slot))


def _still_counts(evidence: Evidence) -> bool:
    """Whether a job that is still to be planned will have the slot: to come, alone, or behind the end of a pause."""
    job, slot = evidence.job, evidence.slot_or_now
    follows_pause = job.replan_from is not None and slot >= job.replan_from
    return slot > evidence.now or evidence.schedule.slots is Slots.ONE or follows_pause


def _limit_words(evidence: Evidence) -> str:
    """The limits of the job that leave the slot out, in words."""
    slot, policy = evidence.slot_or_now, evidence.policy
    if policy.starts_at and slot < policy.starts_at:
        return _("The job starts at {at} (starts_at).").format(at=said(policy.starts_at))
    if policy.ends_at and slot > policy.ends_at:
        return _("The job ends at {at} (ends_at).").format(at=said(policy.ends_at))
    if policy.max_runs is None or not _comes_after_the_last_run(evidence, policy.max_runs):
        return ""
    text = ngettext(
        "The job will have had its {most} run by then (max_runs); {ended} has ended.",
        "The job will have had its {most} runs by then (max_runs); {ended} have ended.",
        policy.max_runs,
    )
    return text.format(most=policy.max_runs, ended=evidence.job.ended_runs)


def _comes_after_the_last_run(evidence: Evidence, most: int) -> bool:
    """Whether the slots before it will have used up `max_runs`. One that is planned has its run."""
    job, slot = evidence.job, evidence.slot_or_now
    left = max(0, most - job.ended_runs - job.active_runs - waiting_attempts(job))
    planned = job.next_run_at
    if planned is None or (evidence.resumes_at and planned < evidence.resumes_at):
        begin = slots_begin(job, max(evidence.now, shifted(evidence.resumes_at or evidence.now, -RESOLUTION)))
        return not left or evidence.schedule.count_between(begin, slot, left + 1) > left
    behind_it = max(0, left - 1)
    return evidence.schedule.count_between(_counted_with(evidence, planned), slot, behind_it + 1) > behind_it


def _counted_with(evidence: Evidence, planned: datetime) -> datetime:
    """Return the newest slot that is counted on the run of the one that is planned, which may start later."""
    start = max(planned, evidence.job.wake_at or planned, evidence.now)
    newest = evidence.schedule.previous_before(shifted(start, RESOLUTION)) if evidence.has_grid else None
    return max(planned, newest or planned)


def _replanned(evidence: Evidence) -> Finding:
    if not evidence.with_task:
        return _no_instance(
            evidence, _("The first that starts plans the job from then on, and slots before are not made up for.")
        )
    text = _(
        "The job was created, changed or resumed a moment ago; the next tick plans it from then on, and slots before"
        " are not made up for."
    )
    return Finding(Verdict.NOT_PLANNED, text)


def to_come(evidence: Evidence) -> Finding | None:
    """The slot lies in the future."""
    job, slot, now = evidence.job, evidence.slot_or_now, evidence.now
    if slot <= now:
        return None
    if is_put_off(evidence):
        return put_off(evidence)
    start = slot + jitter_of(job, slot)
    sentence = _("It will run in {wait}, at {start}.").format(wait=lasted(start - now), start=said(start))
    details = {"start_at": instant_text(start), "alive_instances": len(evidence.alive)}
    return Finding(Verdict.WILL_RUN, " ".join([sentence, *_conditions(evidence, start - slot)]), details=details)


def _unable(evidence: Evidence) -> Iterator[str]:
    """What may keep the next start from running: the module failed here, instances that cannot run it, its gate."""
    yield from _not_imported(evidence)
    for one in evidence.alive:
        if why := one.unable.get(str(evidence.job.pk)):
            yield _("The instance {instance} cannot run it now, and tries again: {why}.").format(instance=one, why=why)
    yield from gate_words(evidence)


def _not_imported(evidence: Evidence) -> Iterator[str]:
    """The module of the task cannot be imported in this process: a server that starts now would not run it."""
    job = evidence.job
    if job.task not in registry and registry.failed_module(job.source):
        yield f"{registry.why_missing(job.task, job.source).rstrip('.')}."


def _conditions(evidence: Evidence, jitter: timedelta) -> Iterator[str]:
    """What stands between now and a future slot."""
    yield from _unable(evidence)
    job = evidence.job
    if jitter:
        yield _("That is {jitter} after its slot, by the jitter of the job.").format(jitter=lasted(jitter))
    if job.paused_at:
        yield _("The job is paused until {until}.").format(until=said(job.paused_until))
    if job.broken_at:
        yield _("The job is broken; this run is the probe of its breaker.")
    if evidence.living:
        text = _("Run {run} is going on; should it still be by then, the overlap policy ({policy}) decides.")
        yield text.format(run=evidence.living[0].pk, policy=evidence.policy.overlap.value)
    if not evidence.with_task:
        yield _("Mind that no live instance has its task now.")
    elif not evidence.alive:
        yield f"{_not_taken(evidence)}."


def nothing_to_come(evidence: Evidence) -> Finding:
    """Nothing stops the job, and it has no next slot."""
    job, schedule = evidence.job, evidence.schedule
    if job.stale:
        return _replanned(evidence)
    if schedule.is_dependent and (missing := missing_parents(Plan.of(job), schedule, ends_of_parents(job))):
        return Finding(Verdict.NOT_PLANNED, _("It waits for {jobs}.").format(jobs=", ".join(missing)))
    if job.last_slot and job.job_state == JobState.FINISHED:
        return Finding(Verdict.NOT_PLANNED, _no_further_slot(job))
    return Finding(Verdict.NOT_PLANNED, _("Nothing stops the job, and its schedule has no slot to come now."))


def no_instance(evidence: Evidence) -> Finding | None:
    """The slot has passed, and no live instance could have decided on it."""
    if evidence.alive:
        return None
    return _no_instance(
        evidence, _("When one does, the misfire policy ({policy}) decides on the slots that have passed.")
    )


def waiting(evidence: Evidence) -> Finding:
    """Nothing stands in the way."""
    start, slot, count = evidence.job.wake_at, evidence.slot_or_now, len(evidence.alive)
    text = ngettext(
        "It is due since {since}, and {count} live instance has its task: it starts as soon as a worker"
        " (and its group, if it has one) is free.",
        "It is due since {since}, and {count} live instances have its task: it starts as soon as a worker"
        " (and its group, if it has one) is free.",
        count,
    )
    since = said(slot if start is None else max(start, slot))
    sentence = " ".join([text.format(since=since, count=count), *_unable(evidence)])
    return Finding(Verdict.UNDECIDED, sentence, details={"alive_instances": count})


def _not_taken(evidence: Evidence) -> str:
    """Say that of the processes with the task none takes the group of the job."""
    if group := evidence.job.in_group:
        return _("No live process takes the group {group} now").format(group=group)
    return _("No live process takes jobs without a group now")


def _no_instance(evidence: Evidence, then: str) -> Finding:
    if evidence.with_task:
        first = f"{_not_taken(evidence)}."
    elif evidence.instances:
        beat: datetime = evidence.instances[0].heartbeat_at
        text = _("No live instance has the task {task}; the last heartbeat of any is {age} old.")
        first = text.format(task=evidence.job.task, age=lasted(evidence.now - beat))
    else:
        first = _("No instance of the scheduler is running.")
    sentence = " ".join([first, then.format(policy=evidence.policy.misfire.value), *_not_imported(evidence)])
    return Finding(Verdict.NO_INSTANCE, sentence, details={"alive_instances": 0})
