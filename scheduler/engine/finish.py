"""Finish: write how runs ended, and what follows for their jobs."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from operator import attrgetter
from typing import Any

from scheduler.engine.base import Engine
from scheduler.engine.plan import plan_probe, policy_of, schedule_of, set_next
from scheduler.engine.write import LostRace, insert_runs, locked, update_rows, write_transaction
from scheduler.exceptions import ConfigurationError
from scheduler.models import COUNTED, UNPLANNED, Job, RunLog, Status, Trigger
from scheduler.policy import MAX_LOST_ATTEMPTS, OnLost, breaker, overlap
from scheduler.policy.misfire import RESOLUTION, latest_slot

RUN_COLUMNS = ("status", "due_at", "started_at", "finished_at", "result", "error", "log", "totals", "reason")
JOB_COLUMNS = (
    "version",
    "next_run_at", "next_start_at", "last_slot", "active_runs", "consecutive_failures", "broken_at", "problem", "state",
    "last_run_at", "last_finished_at", "last_status", "last_success_at",
    "successes", "failures", "timeouts", "losses", "cancellations", "skips",
)  # fmt: skip
run_values, job_values = attrgetter(*RUN_COLUMNS), attrgetter(*JOB_COLUMNS)
COUNTERS = {
    Status.SUCCEEDED: "successes",
    Status.FAILED: "failures",
    Status.TIMED_OUT: "timeouts",
    Status.LOST: "losses",
    Status.CANCELLED: "cancellations",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How a run ended. `status` is terminal; `totals["errors"]` above 0 counts as a failure."""

    status: str
    started_at: datetime
    finished_at: datetime
    result: str = ""
    error: str = ""
    log: str = ""
    reason: str = ""
    totals: dict[str, Any] | None = None
    state: dict[str, Any] | None = None

    @property
    def failed(self) -> bool:
        """Whether the outcome counts as a failure for backoff and breaker."""
        if self.status == Status.SUCCEEDED:
            return bool(self.totals and self.totals.get("errors"))
        return self.status in (Status.FAILED, Status.TIMED_OUT)


@dataclass(frozen=True, slots=True)
class Finished:
    """The end of a run: the run as its claim wrote it, and how it ended."""

    run: RunLog
    outcome: Outcome


@dataclass(slots=True)
class Settled:
    """What one pass wrote: runs that ended, slots that passed meanwhile, jobs whose breaker changed, stale ends."""

    finished: list[RunLog] = field(default_factory=list)
    skipped: list[RunLog] = field(default_factory=list)
    broken: list[RunLog] = field(default_factory=list)
    recovered: list[RunLog] = field(default_factory=list)
    stale: list[int] = field(default_factory=list)
    promised: int = 0

    def __iadd__(self, other: "Settled") -> "Settled":
        self.finished += other.finished
        self.skipped += other.skipped
        self.broken += other.broken
        self.recovered += other.recovered
        self.stale += other.stale
        self.promised += other.promised
        return self


def finish_runs(engine: Engine, ends: Sequence[Finished], *, in_doubt: bool = False) -> Settled:
    """Write the ends of runs in one transaction. An end whose token is void changes nothing but a note on the run.

    Most jobs are as their claim left them, so the ends are written on that condition, without reading anything first.
    If anybody changed one of the jobs meanwhile, nothing was written, and the rows are locked and read. `in_doubt`
    reads at once: for runs of others, and when an earlier try may have been committed although its answer was lost.
    """
    if not in_doubt:
        try:
            with write_transaction(engine.using):
                return _settle_all(engine, [(end.run, end.outcome) for end in ends], Settled())
        except LostRace:
            engine.lost_races += 1
    with write_transaction(engine.using):
        settled = Settled()
        return _settle_all(engine, _as_stored(engine, ends, settled), settled)


def _settle_all(engine: Engine, ends: Sequence[tuple[RunLog, Outcome]], settled: Settled) -> Settled:
    seen = {run.job_id: run.job.version for run, _ in ends}
    follow_ups: list[RunLog] = []
    for run, outcome in ends:
        _close(run, outcome)
        follow_ups += _settle(run, outcome, settled)
        settled.finished.append(run)
    _write(engine, settled.finished, seen)
    insert_runs(engine.using, follow_ups)
    _note_stale(engine, settled.stale)
    return settled


def _as_stored(engine: Engine, ends: Sequence[Finished], settled: Settled) -> list[tuple[RunLog, Outcome]]:
    """Lock the runs, then their jobs in the order of their ids, so that two instances never wait for each other."""
    ids = [end.run.pk for end in ends]
    runs = {run.pk: run for run in locked(RunLog.objects.using(engine.using).filter(pk__in=ids).order_by("pk"))}
    job_ids = {run.job_id for run in runs.values()}
    jobs = {job.pk: job for job in locked(Job.objects.using(engine.using).filter(pk__in=job_ids).order_by("pk"))}
    valid = []
    for end in ends:
        run = runs.get(end.run.pk)
        if run is None or _is_written(run, end):
            continue
        if run.status == Status.RUNNING and run.token == end.run.token:
            run.job = jobs[run.job_id]
            valid.append((run, end.outcome))
        else:
            settled.stale.append(run.pk)
    return valid


def _is_written(run: RunLog, end: Finished) -> bool:
    """Whether an earlier try was committed although its answer never came."""
    written = run.token, run.status, run.finished_at
    return written == (end.run.token, end.outcome.status, end.outcome.finished_at)


def _close(run: RunLog, outcome: Outcome) -> None:
    run.status = outcome.status
    run.due_at = None
    run.started_at, run.finished_at = outcome.started_at, outcome.finished_at
    run.result, run.error, run.log = outcome.result, outcome.error, outcome.log
    run.totals, run.reason = outcome.totals, outcome.reason


def _settle(run: RunLog, outcome: Outcome, settled: Settled) -> list[RunLog]:
    """Bring the job up to date with the end of one of its runs; returns the rows that follow from it."""
    job = run.job
    job.active_runs -= 1
    _count(job, outcome)
    follow_ups = []
    try:
        if run.trigger in COUNTED:
            _judge_breaker(run, outcome, settled)
        follow_ups += _next_attempt(run, outcome)
        follow_ups += _plan_on(run, outcome)
    except (ConfigurationError, ValueError, OverflowError) as error:
        job.next_run_at = job.next_start_at = None
        job.problem = str(error)
    settled.skipped += [row for row in follow_ups if row.status == Status.SKIPPED]
    settled.promised += sum(row.status == Status.PENDING for row in follow_ups)
    return follow_ups


def _count(job: Job, outcome: Outcome) -> None:
    counter = COUNTERS.get(Status(outcome.status))
    if counter:
        setattr(job, counter, getattr(job, counter) + 1)
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


def _lost_for_good(run: RunLog, outcome: Outcome) -> bool:
    return outcome.status == Status.LOST and run.attempt >= MAX_LOST_ATTEMPTS


def _next_attempt(run: RunLog, outcome: Outcome) -> list[RunLog]:
    """Return the promise of a further attempt of the same slot, if the policies ask for one."""
    if run.trigger not in COUNTED or run.job.broken_at or not run.job.enabled:
        return []
    policy = policy_of(run.job)
    if outcome.failed and run.attempt <= policy.retries:
        due = outcome.finished_at + policy.backoff.step(run.attempt)
    elif outcome.status == Status.LOST and policy.on_lost is OnLost.RETRY and run.attempt < MAX_LOST_ATTEMPTS:
        due = outcome.finished_at
    else:
        return []
    return [
        RunLog.of(
            run.job,
            scheduled_for=run.scheduled_for,
            attempt=run.attempt + 1,
            trigger=Trigger.RETRY,
            due_at=due,
            kwargs=run.kwargs,
        )
    ]


def _plan_on(run: RunLog, outcome: Outcome) -> list[RunLog]:
    """Plan the next start, and write off the slots that passed while the run lived."""
    job = run.job
    if job.next_start_at == UNPLANNED or not job.enabled or job.paused_at or job.orphaned_at or job.problem:
        return []
    if job.broken_at:
        plan_probe(job, outcome.finished_at)
        return []
    schedule = schedule_of(job)
    if schedule.from_completion and job.next_run_at is None:
        job.next_run_at = schedule.next_after(outcome.finished_at)
    if outcome.status == Status.LOST:
        # Nothing was alive to run the slots since: the misfire policy decides on them, not the overlap policy.
        set_next(job, job.next_run_at)
        return []
    skipped = _skip_passed(job, outcome.finished_at) if _overlapped(job) else []
    set_next(job, job.next_run_at, not_before=_earliest_start(run, outcome))
    return skipped


def _overlapped(job: Job) -> bool:
    """Whether the run kept other slots of the job from starting, and they shall not follow it."""
    return job.next_start_at is None and not overlap.queues(policy_of(job).overlap)


def _earliest_start(run: RunLog, outcome: Outcome) -> datetime:
    """A slot that waited for the run to end is not late; after a failure the backoff comes first."""
    if run.trigger not in COUNTED or not outcome.failed:
        return outcome.finished_at
    return outcome.finished_at + policy_of(run.job).backoff.step(run.job.consecutive_failures)


def _skip_passed(job: Job, until: datetime) -> list[RunLog]:
    """Return one row for all slots up to `until`, and move the plan behind them; constant time in their number."""
    first = job.next_run_at
    if first is None or first > until:
        return []
    schedule = schedule_of(job)
    newest = latest_slot(schedule, first, until)
    count = schedule.count_between(first - RESOLUTION, newest)
    job.skips += count
    job.last_slot = newest
    job.next_run_at = schedule.next_after(newest)
    row = RunLog.of(
        job,
        scheduled_for=newest,
        status=Status.SKIPPED,
        reason="overlap: the run before was still going",
        coalesced=count - 1,
        coalesced_from=first if count > 1 else None,
    )
    return [row]


def _write(engine: Engine, runs: list[RunLog], seen: dict[int, int]) -> None:
    rows = ((*run_values(run), run.pk, run.token, Status.RUNNING) for run in runs)
    update_rows(engine.using, RunLog, RUN_COLUMNS, ("id", "token", "status"), rows)
    jobs = {run.job_id: run.job for run in runs}
    for job in jobs.values():
        job.version += 1
    changed = ((*job_values(jobs[pk]), pk, seen[pk]) for pk in sorted(jobs))
    update_rows(engine.using, Job, JOB_COLUMNS, ("id", "version"), changed)


def _note_stale(engine: Engine, ids: list[int]) -> None:
    if ids:
        RunLog.objects.using(engine.using).filter(pk__in=ids).update(note="finished late: its claim was void by then")
