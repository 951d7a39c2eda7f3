"""Settle: what the end of a run means for its job and its slot. Changes both in memory; says which rows follow."""

from dataclasses import replace
from datetime import datetime, timedelta

from scheduler.conf import conf
from scheduler.engine.events import event_of_run
from scheduler.engine.outcome import NO_TIME, UNTIL_ASKED_AGAIN, Outcome, Settled
from scheduler.engine.plan import End, Known, Plan, ended, stale
from scheduler.engine.plan_basis import BEGINNING, policy_of
from scheduler.engine.postponed import held_until
from scheduler.engine.replan import ends_of_parents, replan, runs_left
from scheduler.engine.write_off import OVERLAP, write_off
from scheduler.exceptions import ConfigurationError
from scheduler.models import EventKind, Job, RunLog, Status, Trigger
from scheduler.models.run import COUNTERS
from scheduler.policy import MAX_LOST_ATTEMPTS, OnLost, breaker, overlap
from scheduler.safetext import in_a_row


def settle(run: RunLog, outcome: Outcome, settled: Settled) -> list[RunLog]:
    """Close a run, or let it wait for its gate, and bring its job up to date.

    Returns the rows that follow: skipped slots, promised attempts.
    """
    outcome, claimed_for, died = final(run, outcome), run.started_at, outcome.status == Status.LOST
    job = run.job
    job.active_runs = max(0, job.active_runs - 1)  # a count that was bent must not keep the end from being written
    if outcome.waits:
        _wait_for_its_gate(run, outcome)
    else:
        close(run, outcome)
        _count(run, outcome)
        _keep_state(run, outcome)
    follow_ups = []
    try:
        if run.cause.counts:
            _judge_breaker(run, outcome, settled)
        follow_ups += next_attempt(run, outcome)
        promised = len(follow_ups) + outcome.waits
        if _took_its_place_along(run, outcome, follow_ups, settled) and job.next_run_at is not None:
            claimed_for = BEGINNING  # every slot since its first attempt was kept from starting
        follow_ups += _plan_on(run, outcome, claimed_for or outcome.started_at, died=died, promised=promised)
        _clear_problem(run, outcome, settled)
    except (ConfigurationError, ValueError, OverflowError):  # unreadable here: a process that can read it plans it
        stale(Plan.of(job), job.replan_from or job.next_run_at).onto(job)
    _tell(run, outcome, follow_ups, settled)
    return follow_ups


def _clear_problem(run: RunLog, outcome: Outcome, settled: Settled) -> None:
    """A job of which a run has ended can be run by some process."""
    if run.job.problem and not (run.job.is_set_aside or run.job.orphaned_at):
        run.job.problem = ""
        settled.events.append(event_of_run(run, EventKind.RETURNED, outcome.finished_at))


def _tell(run: RunLog, outcome: Outcome, follow_ups: list[RunLog], settled: Settled) -> None:
    """Note what the end has settled; a run that waits for its gate has come to no end."""
    promised = sum(row.status == Status.PENDING for row in follow_ups) + outcome.waits
    if not promised and (outcome.ran or run.attempt > 1):
        run.job.last_outcome_at = outcome.finished_at
    settled.skipped += [row for row in follow_ups if row.status == Status.SKIPPED]
    settled.promised += promised
    run.goes_again = promised > 0
    if not outcome.waits:
        (settled.skipped if outcome.status == Status.SKIPPED else settled.finished).append(run)


def final(run: RunLog, outcome: Outcome) -> Outcome:
    """A run that was marked as timed out stays so, however its call ended later; so does the wish of a person.

    A run that was to be cancelled, and ended because its process was stopped, is cancelled; so is one whose gate is
    closed, and one that puts itself off: they would start later.
    """
    if run.status == Status.TIMED_OUT and outcome.status != Status.TIMED_OUT:
        return replace(outcome, status=Status.TIMED_OUT, error=outcome.error or run.error)
    was_cut_off = outcome.status == Status.LOST and outcome.blameless
    if (outcome.waits or was_cut_off or outcome.status == Status.POSTPONED) and run.stop_requested_at is not None:
        return replace(outcome, status=Status.CANCELLED, error="")
    return outcome


def _wait_for_its_gate(run: RunLog, outcome: Outcome) -> None:
    """Promise the run again, with its place: the same row asks its gate once more."""
    run.status, run.reason = Status.PENDING, outcome.reason
    run.started_at, run.due_at = None, outcome.finished_at + UNTIL_ASKED_AGAIN


def close(run: RunLog, outcome: Outcome) -> None:
    run.status = outcome.status
    run.due_at = None
    run.started_at, run.finished_at = outcome.started_at, outcome.finished_at
    if not outcome.ran:
        run.started_at = None
    run.result, run.error, run.log = outcome.result, outcome.error, outcome.log
    run.totals, run.progress, run.reason = outcome.totals, outcome.progress, outcome.reason
    run.errors, run.exception = outcome.errors, outcome.exception
    run.error_class, run.return_value = outcome.error_class, outcome.return_value


def _count(run: RunLog, outcome: Outcome) -> None:
    job, counter = run.job, COUNTERS.get(Status(outcome.status))
    if counter:
        setattr(job, counter, getattr(job, counter) + 1)
    if outcome.status == Status.SKIPPED:
        job.skips += run.coalesced  # skips are counted slot by slot
    if not outcome.ran:
        return
    job.last_run_at, job.last_finished_at = outcome.started_at, outcome.finished_at
    job.last_status, job.last_errors = outcome.status, run.errors if outcome.failed else 0
    if outcome.status == Status.SUCCEEDED:
        job.last_success_at = outcome.finished_at
        job.successes_with_errors += run.errors > 0


def _keep_state(run: RunLog, outcome: Outcome) -> None:
    """Of a run that could not say its state, or whose state does not count, the job keeps what it saved last."""
    state = run.checkpoint if outcome.state is None else outcome.state
    if outcome.ran and state is not None:
        run.job.state = state
    run.checkpoint = None


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
        _break(run, outcome, settled)
    elif verdict is breaker.BreakerVerdict.RECOVERED:
        _recover(run, outcome, settled)


def _break(run: RunLog, outcome: Outcome, settled: Settled) -> None:
    run.job.broken_at = outcome.finished_at
    run.note = f"tripped the breaker: {in_a_row(run.job.consecutive_failures)}"
    settled.broken.append(run)
    settled.events.append(event_of_run(run, EventKind.BROKEN, outcome.finished_at))


def _recover(run: RunLog, outcome: Outcome, settled: Settled) -> None:
    run.job.broken_at = None
    settled.recovered.append(run)
    settled.events.append(event_of_run(run, EventKind.RECOVERED, outcome.finished_at))
    if not run.job.stale:  # broken it had no plan, or only that of its next probe
        replan(run.job, outcome.finished_at)


def _lost_for_good(run: RunLog, outcome: Outcome) -> bool:
    return outcome.status == Status.LOST and not outcome.blameless and run.failed_attempts + 1 >= MAX_LOST_ATTEMPTS


def _goes_again(run: RunLog, outcome: Outcome) -> bool:
    """Whether the slot of a lost run is run again."""
    return policy_of(run.job).on_lost is OnLost.RETRY and not _lost_for_good(run, outcome)


def next_attempt(run: RunLog, outcome: Outcome) -> list[RunLog]:
    """Return the promise of a further attempt of the same slot, if the task or the policies ask for one."""
    policy = policy_of(run.job)
    failed_attempts, trigger = run.failed_attempts + (not outcome.blameless), run.cause.retried_as
    if outcome.status == Status.POSTPONED:
        delay, failed_attempts, trigger = outcome.postponed_by, run.failed_attempts, run.trigger
    elif not trigger or _is_stopped_for(run):
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
            priority=run.priority,
            token=run.token if run.cause.carried else 0,
        )
    ]


def _is_stopped_for(run: RunLog) -> bool:
    """Whether no further attempt follows: the run was asked to stop, whether it noticed or not, or its job is stopped;
    what a person asked for runs on a stopped job too."""
    is_of_stopped = run.trigger != Trigger.MANUAL and bool(run.job.broken_at or not run.job.enabled)
    return is_of_stopped or run.stop_requested_at is not None


def _took_its_place_along(run: RunLog, outcome: Outcome, promised: list[RunLog], settled: Settled) -> bool:
    """Note until when a postponed attempt holds a place of the job; whether the run that ended had held one itself."""
    job, before = run.job, run.job.postponed_until
    goes_on = run if outcome.waits else promised[0] if outcome.status == Status.POSTPONED else None
    if goes_on is not None and not run.cause.waits:
        settled.held[job.pk] = max(filter(None, (settled.held.get(job.pk), goes_on.due_at)))
    job.postponed_until = max(filter(None, (held_until(job), settled.held.get(job.pk))), default=None)
    return before is not None and (run.attempt > 1 or not _is_free_beside(job))


def _not_before_its_slot(run: RunLog, due_at: datetime) -> datetime:
    """A run that was claimed ahead may be lost before its slot. One that is further off is from before a clock step."""
    slot: datetime = run.scheduled_for
    return slot if due_at < slot <= due_at + timedelta(seconds=conf.CLAIM_AHEAD) else due_at


def _plan_on(run: RunLog, outcome: Outcome, claimed_for: datetime, *, died: bool, promised: int) -> list[RunLog]:
    """Plan the next start, and write off the slots that passed while the run lived, from `claimed_for` on."""
    job = run.job
    known = Known(runs_left(job, promised=promised), ends_of_parents(job) if job.broken_at else {})
    end = End(outcome.finished_at, claimed_for, run.cause.counts, outcome.ran, outcome.failed, died)
    plan, passed = ended(Plan.of(job), job, end, known)
    plan.onto(job)
    return [write_off(job, passed, Status.SKIPPED, OVERLAP)] if passed else []


def _is_free_beside(job: Job) -> bool:
    """Whether the job may have another run beside one."""
    policy = policy_of(job)
    return overlap.is_free(policy.overlap, 1, policy.max_concurrent)
