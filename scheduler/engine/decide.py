"""Decide: what becomes of one due job. Changes the job in memory and says which rows the ledger gets."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from scheduler.engine.base import Engine
from scheduler.engine.limits import Limits, rate_is_used_up
from scheduler.engine.plan import last_instant, policy_of, probe_from, replan, schedule_of, set_next, slot_behind
from scheduler.engine.sync import served_elsewhere
from scheduler.exceptions import InvalidSchedule
from scheduler.models import UNPLANNED, Job, RunLog, Status, Trigger
from scheduler.policy import misfire
from scheduler.policy.overlap import Overlap, is_free
from scheduler.schedules import AfterJobs, Schedule


@dataclass(slots=True)
class Decision:
    """One job, as it shall be written, and its new rows: at most one of them runs."""

    job: Job
    rows: list[RunLog] = field(default_factory=list)
    resumed: bool = False
    waits: bool = False
    """The job stays due as it is: its group is full."""
    replaces: bool = False
    """The living run of the job is to be asked to stop."""


def decide(engine: Engine, job: Job, now: datetime, limits: Limits) -> Decision:
    """Decide what a due job does. A job that cannot be read is set aside with its problem; the others go on."""
    decision = Decision(job)
    try:
        _decide(engine, decision, now, limits)
    except (InvalidSchedule, ValueError, OverflowError, TypeError, KeyError) as error:
        job.next_run_at = job.next_start_at = None
        job.problem = str(error) or type(error).__name__
        decision.rows.clear()
    return decision


def _decide(engine: Engine, decision: Decision, now: datetime, limits: Limits) -> None:
    job = decision.job
    task = engine.registry.find(job.task)
    if task is None:
        _set_aside(engine, job, now)
    elif job.next_start_at == UNPLANNED or job.next_run_at is None or not may_run(job):
        decision.resumed = _plan(job, now)
    elif not is_free(policy_of(job).overlap, job.active_runs, policy_of(job).max_concurrent):
        decision.replaces = policy_of(job).overlap is Overlap.REPLACE
        job.next_start_at = None
    elif not limits.admits(job):
        decision.waits = True
    elif rate_is_used_up(engine, job, policy_of(job), max(now, job.next_start_at)):
        decision.rows = skip_slot(job, now, "rate_limited: its runs of this window are used up")
    else:
        decision.rows = take_slot(engine, job, now)


def _plan(job: Job, now: datetime) -> bool:
    """Plan a job that is new, was changed or resumed, or whose pause is over; True when that ends its pause."""
    paused_until, since = job.paused_until, None
    is_over = paused_until is not None and paused_until <= now
    if job.next_start_at == UNPLANNED:
        since = job.next_run_at
    elif is_over:
        since = paused_until
    if is_over:
        end_pause(job)
    job.problem, job.orphaned_at = "", None
    replan(job, now, since=since)
    return is_over


def step_over(engine: Engine, job: Job, now: datetime, limits: Limits) -> Decision:
    """Go past slots that the ledger has already decided (a restored backup, a clock that was set back).

    An interval goes on within one interval, off its grid: behind it every slot may be decided for a long time.
    """
    schedule = schedule_of(job)
    job.last_slot = misfire.latest_slot(schedule, job.next_run_at or now, last_instant(job, now))
    if schedule.period is not None:
        set_next(job, now + schedule.period)
    else:
        replan(job, now)
    return Decision(job)


def may_run(job: Job, *, at: datetime | None = None) -> bool:
    """Return whether the schedule of a job may start it: enabled, not stopped by anybody, or due for its probe.

    A slot that is planned for a broken job is that of its probe; an attempt that was promised before may be due too
    early for one.
    """
    probe_at = probe_from(job)
    probing = probe_at is not None and (at is None or at >= probe_at)
    return job.enabled and not (is_paused(job, at=at) or job.orphaned_at or (job.broken_at and not probing))


def is_paused(job: Job, *, at: datetime | None = None) -> bool:
    """Return whether a pause of its own stops a job; not one that is over by `at`, though nobody may have ended it."""
    is_over = at is not None and job.paused_until is not None and job.paused_until <= at
    return job.paused_at is not None and not is_over


def _set_aside(engine: Engine, job: Job, now: datetime) -> None:
    """A due job whose task is not registered here: another instance's, or nobody's any more.

    An orphan keeps its next slot, or from where it was to be planned: so no slot until its task returns is forgotten.
    """
    if job.task in served_elsewhere(engine, now):
        engine.foreign_tasks.add(job.task)
        return
    job.orphaned_at, job.next_start_at = job.orphaned_at or now, None
    job.problem = engine.registry.why_missing(job.task, job.source)


def end_pause(job: Job) -> None:
    """Clear a pause; the caller plans the job afresh."""
    job.paused_at = job.paused_until = None
    job.paused_by = job.pause_reason = ""


def skip_slot(job: Job, now: datetime, reason: str) -> list[RunLog]:
    """Write off the slots of a job that are due, and plan its next one."""
    schedule, slot = schedule_of(job), job.next_run_at or now
    newest = misfire.latest_slot(schedule, slot, last_instant(job, now))
    count = misfire.count_slots(schedule, slot, newest)
    job.skips += count
    job.last_slot = newest
    set_next(job, slot_behind(schedule, newest, now))
    return [
        RunLog.of(
            job,
            scheduled_for=newest,
            status=Status.SKIPPED,
            reason=reason,
            coalesced=count - 1,
            coalesced_from=slot if count > 1 else None,
        )
    ]


def take_slot(engine: Engine, job: Job, now: datetime) -> list[RunLog]:
    """Run, or write off, the slots of a job that are due, and plan its next one."""
    schedule = schedule_of(job)
    due = job.next_start_at or now
    verdict = judge_slots(job, schedule, now, late=now - due)
    rows = []
    if verdict.missed:
        rows.append(_missed(job, verdict))
    if verdict.run:
        rows.append(_running(engine, job, verdict, max(now, due)))
    job.last_slot = verdict.run or verdict.missed
    goes_on = job.last_slot and _goes_on(schedule, verdict, probing=bool(job.broken_at))
    set_next(job, slot_behind(schedule, job.last_slot, now) if goes_on else None)
    return rows


def _goes_on(schedule: Schedule, verdict: misfire.Verdict, *, probing: bool) -> bool:
    """Whether the next slot is known now: neither when it counts from completion, nor when the run is a probe."""
    return not (verdict.run and (schedule.from_completion or probing))


def judge_slots(job: Job, schedule: Schedule, now: datetime, *, late: timedelta) -> misfire.Verdict:
    """Ask the misfire policy about the slots of a job that are due."""
    policy, slot = policy_of(job), job.next_run_at or now
    if isinstance(schedule, AfterJobs):
        return misfire.Verdict(run=slot)
    return misfire.judge(
        schedule,
        slot,
        max(now, slot),
        misfire=policy.misfire,
        late=late,
        grace=misfire.default_grace(schedule) if policy.grace is None else policy.grace,
        window=policy.catch_up_window,
        max_catch_up=policy.max_catch_up,
        ends_at=policy.ends_at,
    )


def _running(engine: Engine, job: Job, verdict: misfire.Verdict, at: datetime) -> RunLog:
    run = RunLog.of(
        job,
        scheduled_for=verdict.run,
        trigger=_trigger(job, verdict),
        coalesced=verdict.coalesced,
        coalesced_from=verdict.coalesced_from,
    )
    start(engine, job, run, at)
    return run


def _trigger(job: Job, verdict: misfire.Verdict) -> Trigger:
    if isinstance(job.schedule, AfterJobs):
        return Trigger.DEPENDENCY
    return Trigger.CATCH_UP if verdict.catch_up else Trigger.SCHEDULE


def start(engine: Engine, job: Job, run: RunLog, at: datetime) -> None:
    """Give `run` to this instance with a new fencing token."""
    job.token += 1
    job.active_runs += 1
    run.token = job.token
    run.status = Status.RUNNING
    run.due_at = run.started_at = at
    run.instance_id = engine.instance_id
    run.worker = engine.name


def _missed(job: Job, verdict: misfire.Verdict) -> RunLog:
    job.misses += 1 + verdict.missed_coalesced
    return RunLog.of(
        job,
        scheduled_for=verdict.missed,
        status=Status.MISSED,
        reason=verdict.why,
        coalesced=verdict.missed_coalesced,
        coalesced_from=verdict.missed_from,
    )
