"""What the plan of a job says about a slot that has no row: not one at all, to come, late, or past without a trace."""

from collections.abc import Iterator
from datetime import datetime, timedelta

from django.utils.translation import gettext as _

from scheduler.engine.evidence import Evidence
from scheduler.engine.explanation import Finding, Verdict
from scheduler.engine.moments import lasted, said, shifted
from scheduler.engine.plan import jitter_of, slots_begin, waiting_attempts
from scheduler.models import UNPLANNED, Job
from scheduler.policy.misfire import RESOLUTION, Misfire, count_slots
from scheduler.policy.overlap import queues


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
    return Finding(Verdict.NOT_A_SLOT, text.format(**words))


def before_creation(evidence: Evidence) -> Finding | None:
    """The job did not exist yet."""
    job, slot = evidence.job, _slot(evidence)
    if not job.created_at or slot >= job.created_at or slot == job.next_slot:
        return None
    text = _("The job did not exist yet: it was created at {created}.")
    return Finding(Verdict.BEFORE_CREATION, text.format(created=said(job.created_at)))


def decided_before(evidence: Evidence) -> Finding | None:
    """Later slots have been claimed, so this one will not run any more, though no row tells what became of it."""
    job, slot = evidence.job, _slot(evidence)
    if not job.last_slot or slot > job.last_slot:
        return None
    if evidence.is_pruned:
        text = _("Its row is gone: the run log is kept for a limited time, and no row of its kind is that old.")
        return Finding(Verdict.PRUNED, text)
    text = _(
        "The ledger has no row for it, and later slots have been claimed: the job was paused, disabled, broken or"
        " orphaned at the time, or had another schedule. No record of that is kept."
    )
    return Finding(Verdict.NOT_PLANNED, text)


def outside_plan(evidence: Evidence) -> Finding | None:
    """The job is planned past the slot, or has no plan."""
    job, slot = evidence.job, _slot(evidence)
    limit = _limit_words(evidence)
    if limit:
        return Finding(Verdict.NOT_PLANNED, limit)
    if job.next_start_at == UNPLANNED:
        still_counts = slot > evidence.now or evidence.schedule.kind == "once" or _follows_pause(job, slot)
        return None if still_counts else _replanned(evidence)
    if job.paused_at or (job.next_run_at is not None and job.next_run_at <= slot):
        return None  # the pause ends before the slot
    if job.next_run_at is None:
        text = _("The job has no further slot; its last one was {last}.") if job.last_slot else _("It has no slot yet.")
        return Finding(Verdict.NOT_PLANNED, text.format(last=said(job.last_slot)))
    text = _(
        "The job is planned past it: its next slot is {next}. After a pause, a reset or a change of its definition a"
        " job is planned from that moment on."
    )
    return Finding(Verdict.NOT_PLANNED, text.format(next=said(job.next_run_at)))


def _follows_pause(job: Job, slot: datetime) -> bool:
    """Whether a job that is still to be planned will be from the end of a pause on, and the slot comes after that."""
    return job.next_run_at is not None and slot >= job.next_run_at


def _limit_words(evidence: Evidence) -> str:
    """The limits of the job that leave the slot out, in words."""
    slot, policy = _slot(evidence), evidence.policy
    if policy.starts_at and slot < policy.starts_at:
        return _("The job starts at {at} (starts_at).").format(at=said(policy.starts_at))
    if policy.ends_at and slot > policy.ends_at:
        return _("The job ends at {at} (ends_at).").format(at=said(policy.ends_at))
    if policy.max_runs is None or not _comes_after_the_last_run(evidence, policy.max_runs):
        return ""
    text = _("The job will have had its {most} runs by then (max_runs); {ended} have ended.")
    return text.format(most=policy.max_runs, ended=evidence.job.ended_runs)


def _comes_after_the_last_run(evidence: Evidence, most: int) -> bool:
    """Whether the slots before it will have used up `max_runs`. One that is planned has its run."""
    job, slot = evidence.job, _slot(evidence)
    left = max(0, most - job.ended_runs - job.active_runs - waiting_attempts(job))
    planned = job.next_slot
    if planned is None or (evidence.resumes_at and planned < evidence.resumes_at):
        begin = slots_begin(job, max(evidence.now, shifted(evidence.resumes_at or evidence.now, -RESOLUTION)))
        return not left or evidence.schedule.count_between(begin, slot, left + 1) > left
    behind_it = max(0, left - 1)
    return evidence.schedule.count_between(_counted_with(evidence, planned), slot, behind_it + 1) > behind_it


def _counted_with(evidence: Evidence, planned: datetime) -> datetime:
    """Return the newest slot that is counted on the run of the one that is planned, which may start later."""
    start = max(planned, evidence.job.next_start_at or planned, evidence.now)
    newest = evidence.schedule.previous_before(shifted(start, RESOLUTION)) if evidence.has_grid else None
    return max(planned, newest or planned)


def _replanned(evidence: Evidence) -> Finding:
    if not evidence.alive:
        return _nobody(evidence, _("The job is planned from then on, and slots before are not made up for."))
    text = _(
        "The job was created, changed or resumed a moment ago; the next tick plans it from then on, and slots before"
        " are not made up for."
    )
    return Finding(Verdict.NOT_PLANNED, text)


def to_come(evidence: Evidence) -> Finding | None:
    """The slot lies in the future."""
    job, slot, now = evidence.job, _slot(evidence), evidence.now
    if slot <= now:
        return None
    if _is_put_off(evidence):
        return put_off(evidence)
    start = slot + jitter_of(job, slot)
    sentence = _("It will run in {wait}, at {start}.").format(wait=lasted(start - now), start=said(start))
    details = {"start_at": start.isoformat(), "alive_instances": len(evidence.alive)}
    return Finding(Verdict.WILL_RUN, " ".join([sentence, *_conditions(evidence, start - slot)]), details=details)


def _conditions(evidence: Evidence, jitter: timedelta) -> Iterator[str]:
    """What stands between now and a future slot."""
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
    if not evidence.alive:
        yield _("Mind that no live instance has its task now.")


def busy(evidence: Evidence) -> Finding | None:
    """The run before is still going, and its end decides."""
    if evidence.job.next_start_at is not None or not evidence.living:
        return None
    run, overlap = evidence.living[0], evidence.policy.overlap
    if queues(overlap) and evidence.policy.misfire is Misfire.RUN_ALL:
        after = _("afterwards the slots that passed run, the oldest first, at most {most} of them").format(
            most=evidence.policy.max_catch_up
        )
    elif queues(overlap):
        after = _("afterwards the newest slot that passed runs")
    else:
        after = _("at its end the slots that passed meanwhile are recorded as skipped")
    text = _("Run {run}, started at {started}, is still going; {after} (overlap policy {policy}).")
    words = {"run": run.pk, "started": said(run.started_at), "after": after, "policy": overlap.value}
    return Finding(Verdict.UNDECIDED, text.format(**words), details={"running": run.pk})


def put_off(evidence: Evidence) -> Finding | None:
    """The start is put off by jitter, by the backoff after a failure, or because the task asked for it."""
    if not _is_put_off(evidence):
        return None
    job, slot = evidence.job, _slot(evidence)
    start = job.next_start_at
    details = {"start_at": start.isoformat(), "consecutive_failures": job.consecutive_failures}
    if start == job.next_run_at + jitter_of(job, job.next_run_at):
        why = _("the job has jitter")
    elif job.consecutive_failures:
        why = _("the backoff after {failures} failures in a row").format(failures=job.consecutive_failures)
    else:
        why = _("it was put off")
    newest = evidence.schedule.previous_before(shifted(start, RESOLUTION)) if evidence.has_grid else slot
    if newest == slot:
        text = _("It starts at {start}, {wait} from now: {why}.")
        verdict = Verdict.PENDING if slot <= evidence.now else Verdict.WILL_RUN
    elif evidence.policy.misfire is Misfire.RUN_ALL:
        verdict, text = _one_by_one(evidence, newest)
    else:
        text = _("It will not run by itself: the job waits until {start} ({why}), and then one run counts them all.")
        verdict = Verdict.COALESCED
    most = evidence.policy.max_catch_up
    sentence = text.format(start=said(start), wait=lasted(start - evidence.now), why=why, most=most)
    return Finding(verdict, sentence, details=details)


def _one_by_one(evidence: Evidence, newest: datetime | None) -> tuple[Verdict, str]:
    """What the misfire policy that runs every slot makes of those that wait for a start."""
    slot = _slot(evidence)
    if newest and count_slots(evidence.schedule, slot, newest) > evidence.policy.max_catch_up:
        return Verdict.MISSED, _(
            "It will not run: the job waits until {start} ({why}), and then max_catch_up lets only {most} of them run."
        )
    verdict = Verdict.PENDING if slot <= evidence.now else Verdict.WILL_RUN
    return verdict, _("The job waits until {start} ({why}), and then its slots run one by one, the oldest first.")


def _is_put_off(evidence: Evidence) -> bool:
    job, slot = evidence.job, _slot(evidence)
    start, planned = job.next_start_at, job.next_run_at
    if start is None or planned is None or start <= evidence.now:
        return False
    return bool(planned < start and planned <= slot <= start)


def nobody_there(evidence: Evidence) -> Finding | None:
    """The slot has passed, and no live instance could have decided on it."""
    if evidence.alive:
        return None
    return _nobody(evidence, _("When one does, the misfire policy ({policy}) decides on the slots that have passed."))


def waiting(evidence: Evidence) -> Finding:
    """Nothing stands in the way."""
    text = _(
        "It is due since {since}, and {count} live instances have its task: it starts as soon as a worker"
        " (and its group, if it has one) is free."
    )
    start, slot, count = evidence.job.next_start_at, _slot(evidence), len(evidence.alive)
    since = said(slot if start is None else max(start, slot))
    return Finding(Verdict.UNDECIDED, text.format(since=since, count=count), details={"alive_instances": count})


def _nobody(evidence: Evidence, then: str) -> Finding:
    if evidence.instances:
        beat: datetime = evidence.instances[0].heartbeat_at
        text = _("No live instance has the task {task}; the last heartbeat of any is {age} old.")
        first = text.format(task=evidence.job.task, age=lasted(evidence.now - beat))
    else:
        first = _("No instance of the scheduler is running.")
    sentence = f"{first} {then.format(policy=evidence.policy.misfire.value)}"
    return Finding(Verdict.NO_INSTANCE, sentence, details={"alive_instances": 0})


def _slot(evidence: Evidence) -> datetime:
    assert evidence.slot is not None, "an instant that is no slot was answered before"
    return evidence.slot
