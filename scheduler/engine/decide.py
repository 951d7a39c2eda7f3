"""Decide: what becomes of one due job. Changes the job in memory and says which rows the ledger gets."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from scheduler.engine.base import Engine
from scheduler.engine.events import event, stops_of, went_on_or_stopped
from scheduler.engine.handover import is_handed_over, keep
from scheduler.engine.limits import Limits, rate_is_used_up
from scheduler.engine.pauses import end_pause
from scheduler.engine.plan import Plan, decided, orphaned, with_slot
from scheduler.engine.plan_basis import BEGINNING, is_known, last_instant, may_run, policy_of, schedule_of
from scheduler.engine.postponed import held_places, look_again_at
from scheduler.engine.replan import replan, runs_left
from scheduler.engine.sync.served import served_elsewhere
from scheduler.engine.write_off import OVERLAP, write_off
from scheduler.exceptions import ConfigurationError
from scheduler.models import AT_ONCE, EventKind, Job, JobEvent, RunLog, Status, Trigger
from scheduler.models.carriers import is_carrier
from scheduler.models.job_columns import UNABLE
from scheduler.models.loaded import LOADED
from scheduler.policy import misfire
from scheduler.policy.overlap import Overlap, is_free
from scheduler.schedules import Schedule, Slots

UNREADABLE = (ConfigurationError, ValueError, OverflowError, TypeError, KeyError)
"""What a definition raises that this process cannot plan by."""
BY_LOADDATA = "its row was loaded from a dump (loaddata), and is planned from then on"


@dataclass(slots=True)
class Decision:
    """One job, as it is to be written, and its new rows: at most one of them runs."""

    job: Job
    rows: list[RunLog] = field(default_factory=list)
    resumed: bool = False
    waits: bool = False
    """The job stays due as it is: its group is full."""
    error: Exception | None = None
    """Why the job cannot be decided on here; it waits for a process that can."""
    replaces: bool = False
    """The living run of the job is to be asked to stop."""
    events: list[JobEvent] = field(default_factory=list)
    """What happens to the job besides its rows."""


def decide(engine: Engine, job: Job, now: datetime, limits: Limits) -> Decision:
    """Decide what a due job does. One that this process cannot read stays as it is; the others go on."""
    decision, before, is_loaded = Decision(job), stops_of(job), job.plan_basis == LOADED
    if job.problem.startswith(UNABLE):
        job.problem = ""
    try:
        _decide(engine, decision, now, limits)
    except UNREADABLE as error:
        return Decision(job, waits=True, error=error)
    if before != stops_of(job):
        decision.events = went_on_or_stopped(job, before, now)
    if is_loaded:
        decision.events = [event(job, EventKind.EDITED, now, reason=BY_LOADDATA), *decision.events]
    return decision


def _decide(engine: Engine, decision: Decision, now: datetime, limits: Limits) -> None:
    job = decision.job
    task = engine.registry.find(job.task)
    if task is None:
        _set_aside(engine, job, now)
    elif job.stale or _is_unreadable(job) or not may_run(job):
        decision.rows = _too_old_for_code(job, now)
        decision.resumed = _plan(job, now)
    elif not is_free(policy_of(job).overlap, job.active_runs, policy_of(job).max_concurrent):
        decision.replaces = policy_of(job).overlap is Overlap.REPLACE
        job.wake_at = None
    elif job.postponed_until is not None and _is_kept_by_a_postponed(decision, now):
        pass
    elif not limits.admits(job):
        decision.waits = True
    elif rate_is_used_up(engine, job, policy_of(job), max(now, job.wake_at)):
        decision.rows = skip_slot(job, now, "rate_limited: its runs of this window are used up")
    else:
        decision.rows = take_slot(engine, job, now)


def _is_unreadable(job: Job) -> bool:
    """Whether the job is due for no slot, or at no time of it: a value that cannot be read stands for either."""
    return job.next_run_at is None or bool(job.wake_at == AT_ONCE)


def _is_kept_by_a_postponed(decision: Decision, now: datetime) -> bool:
    """Whether an attempt that put itself off keeps the slot from starting, or has kept it until it was cancelled."""
    job, policy, held = decision.job, policy_of(decision.job), held_places(decision.job)
    if not held:
        until, job.postponed_until = min(job.postponed_until, now), None
        if policy.overlap is Overlap.SKIP and job.next_run_at <= until:
            decision.rows = skip_slot(job, until, OVERLAP)
        return bool(decision.rows)
    if policy.overlap is Overlap.REPLACE:
        decision.replaces = True
        return False
    if is_free(policy.overlap, job.active_runs + held, policy.max_concurrent):
        return False
    job.wake_at = look_again_at(job, now)
    return True


def _plan(job: Job, now: datetime) -> bool:
    """Plan a job that is new, was changed or resumed, or whose pause is over; True when that ends its pause."""
    paused_until, since = job.paused_until, None
    is_over = paused_until is not None and paused_until <= now
    if job.stale:
        since = job.replan_from
    elif is_over:
        since = paused_until
    elif _is_unreadable(job):
        since = job.next_run_at or (job.wake_at if job.wake_at > AT_ONCE else None)  # its slot, but for jitter
    if is_over:
        end_pause(job)
    if job.stale or job.orphaned_at:  # it was changed, or its task is back; the end of a pause heals nothing
        job.problem, job.orphaned_at = "", None
    replan(job, now, since=since)
    return is_over


def _too_old_for_code(job: Job, now: datetime) -> list[RunLog]:
    """Write off the slot of a `Once` in code that is older than its grace when this database first meets it.

    What it was for has been done, or is of no use any more. One that a person adds or enables is wanted.
    """
    schedule, policy = schedule_of(job), policy_of(job)
    by_a_person = not job.source or {"schedule", "enabled"} & set(job.overridden_fields or ())
    if schedule.slots is not Slots.ONE or by_a_person or not job.enabled or is_known(job):
        return []
    slot = schedule.next_after(BEGINNING)
    if slot is None or slot == job.last_slot or now - slot <= misfire.grace_of(policy.grace, schedule):
        return []
    job.last_slot = slot
    reason = f"{misfire.FOUND_LATE}, when its code first met this database"
    return [write_off(job, misfire.Passed(slot, slot), Status.MISSED, reason)]


def step_over(engine: Engine, job: Job, now: datetime, limits: Limits) -> Decision:
    """Go past slots that the ledger has already decided (a restored backup, a clock that was set back).

    An interval goes on within one interval, off its grid: behind it every slot may be decided for a long time.
    """
    schedule = schedule_of(job)
    job.last_slot = misfire.latest_slot(schedule, job.next_run_at or now, last_instant(job, now))
    if schedule.period is not None:
        with_slot(Plan.of(job), job, now + schedule.period, left=runs_left(job)).onto(job)
    else:
        replan(job, now)
    return Decision(job)


def why_cancelled(job: Job, run: RunLog, at: datetime) -> str:
    """Return why a promised attempt is cancelled and does not start at `at`; empty where it may start."""
    if run.stop_requested_at is not None:  # while it asked its gate
        return "asked to stop before it began"
    if run.cause.counts and not may_run(job, at=at):
        return f"the job is {job.job_state}"
    return ""


def _set_aside(engine: Engine, job: Job, now: datetime) -> None:
    """A due job whose task is not registered here: another instance has it, or no code any more.

    An orphan keeps from where it is to be planned: so no slot until its task returns is forgotten.
    """
    if is_carrier(job):
        Plan(wake_at=None, stale=False).onto(job)  # what it carries waits for a process that has the task
        return
    if job.task in served_elsewhere(engine, now):
        engine.foreign_tasks.add(job.task)
        return
    orphaned(Plan.of(job), job).onto(job)
    job.orphaned_at = job.orphaned_at or now
    job.problem = engine.registry.why_missing(job.task, job.source)


def skip_slot(job: Job, now: datetime, reason: str) -> list[RunLog]:
    """Write off the slots of a job that are due, and plan its next one."""
    slots = misfire.passed_slots(schedule_of(job), job.next_run_at or now, last_instant(job, now))
    decided(Plan.of(job), job, slots.newest, now, left=runs_left(job)).onto(job)
    return [write_off(job, slots, Status.SKIPPED, reason)]


def take_slot(engine: Engine, job: Job, now: datetime) -> list[RunLog]:
    """Run, or write off, the slots of a job that are due when it starts, and plan its next one.

    A claim made ahead of a start that waited for a backoff, or for the end of a run, stands for the slots in between.
    """
    schedule = schedule_of(job)
    due = job.wake_at or now
    start_at = max(now, due)
    verdict = judge_slots(job, schedule, start_at, late=now - due)
    rows = []
    if verdict.missed:
        missed = misfire.Passed(verdict.missed_from or verdict.missed, verdict.missed, 1 + verdict.missed_coalesced)
        rows.append(write_off(job, missed, Status.MISSED, verdict.why))
    if verdict.run:
        rows.append(_running(engine, job, verdict, start_at))
    promised = sum(row.status == Status.PENDING for row in rows)  # its end may be far off, or never come
    run_decides = verdict.run and (job.broken_at or (schedule.from_completion and not promised))  # on the next slot
    slot, left = verdict.run or verdict.missed, runs_left(job, promised=promised)
    decided(Plan.of(job), job, slot, now, left=left, goes_on=not run_decides).onto(job)
    return rows


def judge_slots(job: Job, schedule: Schedule, now: datetime, *, late: timedelta) -> misfire.Verdict:
    """Ask the misfire policy about the slots of a job that are due."""
    policy, slot = policy_of(job), job.next_run_at or now
    if schedule.is_dependent:
        return misfire.Verdict(run=slot)
    return misfire.judge(
        schedule,
        slot,
        max(now, slot),
        misfire=policy.misfire,
        late=late,
        grace=misfire.grace_of(policy.grace, schedule),
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
    if is_handed_over(engine, job):
        keep(job, run, at)
    else:
        start(engine, job, run, at)
    return run


def _trigger(job: Job, verdict: misfire.Verdict) -> Trigger:
    if job.schedule.is_dependent:
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
