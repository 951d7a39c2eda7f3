"""Settle: what the end of a run means for its job and its slot. Changes both in memory; says which rows follow."""

from dataclasses import replace
from datetime import datetime, timedelta

from scheduler.conf import conf
from scheduler.engine.outcome import NO_TIME, Outcome, Settled
from scheduler.engine.plan import (
    end_of_backoff,
    last_instant,
    plan_probe,
    policy_of,
    replan,
    schedule_of,
    set_next,
    slot_behind,
)
from scheduler.exceptions import ConfigurationError
from scheduler.models import COUNTED, UNPLANNED, Job, RunLog, Status, Trigger
from scheduler.models.run import COUNTERS
from scheduler.policy import MAX_LOST_ATTEMPTS, OnLost, breaker, overlap
from scheduler.policy.misfire import count_slots, latest_slot
from scheduler.schedules import AfterJobs, Schedule

GO_AGAIN: dict[str, Trigger] = {**dict.fromkeys(COUNTED, Trigger.RETRY), Trigger.ACTIVITY: Trigger.ACTIVITY}
"""The triggers of runs that may have a further attempt, each with the trigger of that."""


def settle(run: RunLog, outcome: Outcome, settled: Settled) -> list[RunLog]:
    """Close a run and bring its job up to date; returns the rows that follow: skipped slots, promised attempts."""
    outcome, claimed_for, died = _final(run, outcome), run.started_at, outcome.status == Status.LOST
    _close(run, outcome)
    job = run.job
    job.active_runs -= 1
    _count(run, outcome)
    follow_ups = []
    try:
        if run.trigger in COUNTED:
            _judge_breaker(run, outcome, settled)
        follow_ups += _next_attempt(run, outcome)
        promised = len(follow_ups)
        follow_ups += _plan_on(run, outcome, claimed_for or outcome.started_at, died=died, promised=promised)
    except (ConfigurationError, ValueError, OverflowError) as error:
        job.next_run_at = job.next_start_at = None
        job.problem = str(error)
    promised = sum(row.status == Status.PENDING for row in follow_ups)
    if not promised and (outcome.ran or run.attempt > 1):
        job.last_outcome_at = outcome.finished_at
    settled.skipped += [row for row in follow_ups if row.status == Status.SKIPPED]
    settled.promised += promised
    (settled.skipped if outcome.status == Status.SKIPPED else settled.finished).append(run)
    return follow_ups


def _final(run: RunLog, outcome: Outcome) -> Outcome:
    """A run that was marked as timed out stays so, however its call ended later."""
    if run.status != Status.TIMED_OUT or outcome.status == Status.TIMED_OUT:
        return outcome
    return replace(outcome, status=Status.TIMED_OUT, error=outcome.error or run.error)


def _close(run: RunLog, outcome: Outcome) -> None:
    run.status = outcome.status
    run.due_at = None
    run.started_at, run.finished_at = outcome.started_at, outcome.finished_at
    if not outcome.ran:
        run.started_at = None
    run.result, run.error, run.log = outcome.result, outcome.error, outcome.log
    run.totals, run.progress, run.reason = outcome.totals, outcome.progress, outcome.reason


def _count(run: RunLog, outcome: Outcome) -> None:
    job, counter = run.job, COUNTERS.get(Status(outcome.status))
    if counter:
        setattr(job, counter, getattr(job, counter) + 1)
    if outcome.status == Status.SKIPPED:
        job.skips += run.coalesced  # skips are counted slot by slot
    if not outcome.ran:
        return
    job.last_run_at, job.last_finished_at = outcome.started_at, outcome.finished_at
    job.last_status = outcome.status
    if outcome.status == Status.SUCCEEDED:
        job.last_success_at = outcome.finished_at
    if outcome.state is not None:
        job.state = outcome.state


def _judge_breaker(run: RunLog, outcome: Outcome, settled: Settled) -> None:
    job, policy = run.job, policy_of(run.job)
    failed = outcome.failed or _lost_for_good(run, outcome)
    if not failed and outcome.status != Status.SUCCEEDED:
        return
    if not failed and job.broken_at and outcome.started_at < job.broken_at:
        return  # it began before the failure that broke the job, and is no probe
    job.consecutive_failures = job.consecutive_failures + 1 if failed else 0
    verdict = breaker.judge(
        failed=failed,
        broken=job.broken_at is not None,
        consecutive_failures=job.consecutive_failures,
        threshold=policy.breaker_threshold,
    )
    if verdict is breaker.BreakerVerdict.TRIPPED:
        job.broken_at = outcome.finished_at
        settled.broken.append(run)
    elif verdict is breaker.BreakerVerdict.RECOVERED:
        job.broken_at = None
        settled.recovered.append(run)
        if job.next_start_at != UNPLANNED:  # broken it had no plan, or only that of its next probe
            replan(job, outcome.finished_at)


def _lost_for_good(run: RunLog, outcome: Outcome) -> bool:
    return outcome.status == Status.LOST and not outcome.blameless and run.failed_attempts + 1 >= MAX_LOST_ATTEMPTS


def _goes_again(run: RunLog, outcome: Outcome) -> bool:
    """Whether the slot of a lost run is run again: not when somebody had asked the run to stop, and it did not hear."""
    is_wanted = run.stop_requested_at is None and policy_of(run.job).on_lost is OnLost.RETRY
    return is_wanted and not _lost_for_good(run, outcome)


def _next_attempt(run: RunLog, outcome: Outcome) -> list[RunLog]:
    """Return the promise of a further attempt of the same slot, if the task or the policies ask for one."""
    policy = policy_of(run.job)
    failed_attempts, trigger = run.failed_attempts + (not outcome.blameless), GO_AGAIN.get(run.trigger, Trigger.RETRY)
    if outcome.status == Status.POSTPONED:
        delay, failed_attempts, trigger = outcome.postponed_by, run.failed_attempts, Trigger(run.trigger)
    elif run.trigger not in GO_AGAIN or run.job.broken_at or not run.job.enabled:
        return []
    elif outcome.failed and run.failed_attempts < policy.retries:
        delay = policy.backoff.step(failed_attempts)
    elif outcome.status == Status.LOST and _goes_again(run, outcome):
        delay = NO_TIME
    else:
        return []
    return [
        RunLog.of(
            run.job,
            scheduled_for=run.scheduled_for,
            attempt=run.attempt + 1,
            failed_attempts=failed_attempts,
            trigger=trigger,
            due_at=_not_before_its_slot(run, outcome.finished_at + delay),
            kwargs=run.kwargs,
            actor=run.actor,
        )
    ]


def _not_before_its_slot(run: RunLog, due_at: datetime) -> datetime:
    """A run that was claimed ahead may be lost before its slot. One that is further off is from before a clock step."""
    slot: datetime = run.scheduled_for
    return slot if due_at < slot <= due_at + timedelta(seconds=conf.CLAIM_AHEAD) else due_at


def _plan_on(run: RunLog, outcome: Outcome, claimed_for: datetime, *, died: bool, promised: int) -> list[RunLog]:
    """Plan the next start, and write off the slots that passed while the run lived, from `claimed_for` on."""
    job = run.job
    if job.next_start_at == UNPLANNED or not job.enabled or job.paused_at or job.orphaned_at or job.problem:
        return []
    if job.broken_at and run.trigger in COUNTED:
        plan_probe(job, outcome.finished_at)
        return []
    schedule = schedule_of(job)
    if isinstance(schedule, AfterJobs):
        set_next(job, job.next_run_at, not_before=end_of_backoff(job), promised=promised)
        return []
    if job.next_run_at is None or (schedule.from_completion and run.trigger in COUNTED):
        job.next_run_at = _slot_left_open(job, schedule, outcome)
    planned = job.next_start_at
    if died:
        # Nothing was alive to run the slots since: the misfire policy decides on them, not the overlap policy.
        set_next(job, job.next_run_at, not_before=planned, promised=promised)
        return []
    skipped = _skip_passed(job, outcome.finished_at) if _overlapped(job, claimed_for, outcome.finished_at) else []
    set_next(job, job.next_run_at, not_before=_earliest_start(run, outcome, planned), promised=promised)
    return skipped


def _slot_left_open(job: Job, schedule: Schedule, outcome: Outcome) -> datetime | None:
    """Return the next slot where the run decides on it: counted from completion, that of its last attempt too, or after
    the last of `max_runs`, which is not used up by a run that was skipped."""
    if schedule.from_completion:
        return schedule.next_after(outcome.finished_at)
    if policy_of(job).max_runs is None or job.last_slot is None or job.broken_at:
        return None
    return schedule.next_after(job.last_slot)


def _overlapped(job: Job, claimed_for: datetime, until: datetime) -> bool:
    """Whether a run kept other slots of the job from starting, and they shall not follow it.

    A slot that was due before the run began (it is being caught up, or a run by hand came first) was not kept by it:
    the misfire policy decides on that one and those after it.
    """
    policy = policy_of(job)
    if overlap.queues(policy.overlap) or (job.next_run_at and job.next_run_at <= claimed_for):
        return False
    was_busy = not overlap.is_free(policy.overlap, job.active_runs + 1, policy.max_concurrent)
    return was_busy and (job.next_start_at is None or job.next_start_at <= until)


def _earliest_start(run: RunLog, outcome: Outcome, planned: datetime | None) -> datetime:
    """A slot that waited for the run to end is not late; after a failure the backoff comes first.

    A run beside the plan leaves it as it is, with the backoff of an earlier failure.
    """
    if run.trigger not in COUNTED:
        return max(outcome.finished_at, planned or outcome.finished_at)
    if not outcome.failed:
        return outcome.finished_at
    return outcome.finished_at + policy_of(run.job).backoff.step(run.job.consecutive_failures)


def _skip_passed(job: Job, until: datetime) -> list[RunLog]:
    """Return one row for all slots up to `until`, and move the plan behind them; constant time in their number."""
    first = job.next_run_at
    if first is None or first > until:
        return []
    schedule = schedule_of(job)
    newest = latest_slot(schedule, first, last_instant(job, until))
    count = count_slots(schedule, first, newest)
    job.skips += count
    job.last_slot = newest
    job.next_run_at = slot_behind(schedule, newest, until)
    row = RunLog.of(
        job,
        scheduled_for=newest,
        status=Status.SKIPPED,
        reason="overlap: the run before was still going",
        coalesced=count - 1,
        coalesced_from=first if count > 1 else None,
    )
    return [row]
