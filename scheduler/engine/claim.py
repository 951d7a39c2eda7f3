"""Claim: take due slots and promised attempts, each atomically, before anything starts."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from operator import attrgetter

from django.db import IntegrityError
from django.db.models import F, Q, QuerySet

from scheduler.engine.base import Claimed, Engine
from scheduler.engine.bulk import LostRace, insert_runs, update_rows
from scheduler.engine.decide import Decision, decide, is_paused, may_run, start, step_over
from scheduler.engine.dependencies import tell_parents
from scheduler.engine.finish import end_cancelled
from scheduler.engine.limits import Limits, read_limits
from scheduler.engine.mark import ask_to_stop
from scheduler.engine.plan import policy_of
from scheduler.engine.read import read_rows
from scheduler.engine.sync import served_elsewhere, take_back
from scheduler.engine.write import is_refusal, write_transaction
from scheduler.models import COUNTED, PATIENT, UNPLANNED, Job, RunLog, Status, Trigger
from scheduler.models.fields import Unreadable
from scheduler.models.primary import locked
from scheduler.policy.overlap import Overlap, is_free

CLAIM_COLUMNS = (
    "version",
    "anchor_at", "next_run_at", "next_start_at", "last_slot", "token", "active_runs",
    "paused_at", "paused_until", "paused_by", "pause_reason", "orphaned_at", "problem", "skips", "misses",
    "cancellations",
)  # fmt: skip
values_of = attrgetter(*CLAIM_COLUMNS)
PLANNED_AT_ONCE = 500
ALLOWS = f'"{Overlap.ALLOW}"'
"""What the text of a policy contains that lets runs overlap."""
UNTIL_READABLE = timedelta(minutes=1)
"""For so long an attempt is put off whose policies cannot be read: they may be mended, or be read elsewhere."""
UNTIL_WRITTEN = timedelta(seconds=1)
"""For so long somebody may be writing the log of a run, or its end."""


@dataclass(slots=True)
class Claims:
    """What one pass took: runs to start, and rows that record slots which will not run."""

    runs: list[Claimed] = field(default_factory=list)
    not_run: list[RunLog] = field(default_factory=list)
    resumed: list[Job] = field(default_factory=list)
    looked_at: int = 0
    asked_to_stop: list[int] = field(default_factory=list)
    met_another: bool = False
    """Another instance was counting the places of a group: what was not taken may have a place in a moment."""

    def __iadd__(self, other: "Claims") -> "Claims":
        self.runs += other.runs
        self.not_run += other.not_run
        self.resumed += other.resumed
        self.looked_at += other.looked_at
        self.asked_to_stop += other.asked_to_stop
        self.met_another |= other.met_another
        return self


Decide = Callable[[Engine, Job, datetime, Limits], Decision]


def claim_due(engine: Engine, now: datetime, *, ahead: timedelta, limit: int) -> Claims:
    """Take at most `limit` jobs that are due until `now + ahead`. A lost race is counted and leaves them due.

    A pause ends when its time has come, and not ahead of it.
    """
    due = Job.objects.using(engine.using).due(now + ahead)
    due = due.exclude(paused_until__gt=now, next_start_at__gt=now)
    if engine.foreign_tasks:
        due = due.exclude(task__in=engine.foreign_tasks)
    return _claim_all(engine, due, now, limit)


def plan_jobs(engine: Engine, now: datetime) -> Claims:
    """Plan jobs that are new or were changed, many at once: that takes no worker, and due work waits for it."""
    unplanned = Job.objects.using(engine.using).filter(next_start_at=UNPLANNED)
    if engine.foreign_tasks:
        unplanned = unplanned.exclude(task__in=engine.foreign_tasks)
    return _claim_all(engine, unplanned, now, PLANNED_AT_ONCE)


def _claim_all(engine: Engine, due: QuerySet[Job], now: datetime, limit: int) -> Claims:
    """Claim the jobs at once, or else one by one: one that the database does not take costs no other its turn."""
    try:
        return _claim(engine, due, now, limit, decide)
    except Exception as error:
        if not is_refusal(error):
            raise
        return _claim_one_by_one(engine, due, now, limit)


def _claim(engine: Engine, due: QuerySet[Job], now: datetime, limit: int, decide: Decide) -> Claims:
    try:
        with write_transaction(engine.using):
            limits = read_limits(engine)
            jobs = read_rows(locked(limits.open_jobs(due), skip_locked=True)[:limit])
            decisions = [decision for job in jobs if not (decision := decide(engine, job, now, limits)).waits]
            stopped = _make_room(engine, [decision.job for decision in decisions if decision.replaces], now)
            _write_jobs(engine, [decision.job for decision in decisions])
            insert_runs(engine.using, [row for decision in decisions for row in decision.rows])
            tell_parents(engine.using, [decision.job for decision in decisions])
    except LostRace:
        engine.lost_races += 1
        return Claims()
    if any(decision.job.orphaned_at for decision in decisions):
        take_back(engine, served_elsewhere(engine, now))  # whoever joined meanwhile has looked too early
    return _sorted_out(engine, decisions, Claims(asked_to_stop=stopped, met_another=limits.met_another))


def _make_room(engine: Engine, jobs: list[Job], now: datetime) -> list[int]:
    """Ask the living runs of jobs to stop; where somebody is writing one just now, look at its job again soon."""
    asked = ask_to_stop(engine, [job.pk for job in jobs], now)
    if jobs:
        unasked = RunLog.objects.using(engine.using).living().filter(job__in=jobs, stop_requested_at__isnull=True)
        to_ask = set(unasked.values_list("job_id", flat=True))
        for job in jobs:
            if job.pk in to_ask:
                job.next_start_at = now + UNTIL_WRITTEN
    return asked


def _claim_one_by_one(engine: Engine, due: QuerySet[Job], now: datetime, limit: int) -> Claims:
    """Claim the others, and set aside the job that cannot be written."""
    claims = Claims()
    for pk in list(due.values_list("pk", flat=True)[:limit]):
        try:
            claims += _claim_one(engine, due.filter(pk=pk), now)
        except Exception as error:
            if not is_refusal(error):
                raise
            problem = f"The database does not take its plan: {error}"
            Job.objects.using(engine.using).filter(pk=pk).update(problem=problem, next_run_at=None, next_start_at=None)
    return claims


def _claim_one(engine: Engine, one: QuerySet[Job], now: datetime) -> Claims:
    """Claim one job, or step over its slot when that stands in the ledger already."""
    try:
        return _claim(engine, one, now, 1, decide)
    except IntegrityError:
        return _claim(engine, one, now, 1, step_over)


def _sorted_out(engine: Engine, decisions: list[Decision], claims: Claims) -> Claims:
    claims.looked_at = len(decisions)
    for decision in decisions:
        claims.resumed += [decision.job] if decision.resumed else []
        for row in decision.rows:
            if row.status == Status.RUNNING:
                claims.runs.append(Claimed(row, engine.registry.get(decision.job.task)))
            else:
                claims.not_run.append(row)
    return claims


def claim_waiting(engine: Engine, now: datetime, *, ahead: timedelta, limit: int, run_id: int | None = None) -> Claims:
    """Take at most `limit` promised attempts (retries, runs by hand) whose jobs are free; only `run_id` when given."""
    known = len(engine.foreign_tasks)
    try:
        with write_transaction(engine.using):
            limits = read_limits(engine)
            decided = _decide_waiting(engine, _ready(engine, limits, now, ahead, run_id), now, limit, limits)
            jobs = {run.job_id: run.job for run in decided}
            _write_runs(engine, decided)
            _write_jobs(engine, [jobs[pk] for pk in sorted(jobs)])
            end_cancelled(engine, [run for run in decided if run.status == Status.CANCELLED], now)
    except LostRace:
        engine.lost_races += 1
        return Claims()
    started = [Claimed(run, engine.registry.get(run.job.task)) for run in decided if run.status == Status.RUNNING]
    looked_at = len(decided) + len(engine.foreign_tasks) - known
    return Claims(runs=started, looked_at=looked_at, met_another=limits.met_another)


def _ready(engine: Engine, limits: Limits, now: datetime, ahead: timedelta, run_id: int | None) -> QuerySet[RunLog]:
    """The attempts that can start by all that the database can tell: those that cannot must not crowd them out.

    A backfill lets the slot of its job go first that has been waiting longer; else it would keep all of them waiting.
    """
    ready = limits.open_attempts(RunLog.objects.using(engine.using).ready(now + ahead), now)
    ready = ready.filter(Q(job__active_runs=0) | Q(job__policy__contains=ALLOWS) | Q(trigger=Trigger.ACTIVITY))
    slot_is_first = Q(job__next_start_at__gt=UNPLANNED, job__next_start_at__lte=F("due_at"))
    ready = ready.exclude(slot_is_first, trigger=Trigger.BACKFILL)
    return ready if run_id is None else ready.filter(pk=run_id)


def _decide_waiting(engine: Engine, ready: QuerySet[RunLog], now: datetime, limit: int, limits: Limits) -> list[RunLog]:
    """Decide on the first `limit` attempts. Where each of them has to wait, those behind them have their turn."""
    runs = _lock_waiting(engine, ready, limit)
    decided = [run for run in runs if _take(engine, run, now, limits)]
    if runs and not decided:
        behind = _lock_waiting(engine, ready.exclude(job_id__in=_full_jobs(engine)), limit)
        decided = [run for run in behind if _take(engine, run, now, limits)]
    return decided


def _lock_waiting(engine: Engine, ready: QuerySet[RunLog], limit: int) -> list[RunLog]:
    """Lock attempts with their jobs, as far as nobody else has locked them."""
    ready = ready.exclude(job__task__in=engine.foreign_tasks)
    runs = list(locked(ready, skip_locked=True)[:limit])
    rows = Job.objects.using(engine.using).filter(pk__in={run.job_id for run in runs}).order_by("pk")
    jobs = {job.pk: job for job in locked(rows, skip_locked=True)}
    runs = [run for run in runs if run.job_id in jobs]
    for run in runs:
        run.job = jobs[run.job_id]
    return runs


def _full_jobs(engine: Engine) -> list[int]:
    """Return the jobs that have all the runs they may: how many, only the policy and the schedule can tell."""
    living = RunLog.objects.using(engine.using).living().values("job_id")
    jobs = Job.objects.using(engine.using).filter(pk__in=living).only("policy", "schedule", "active_runs")
    return [job.pk for job in jobs if not _is_free(job)]


def _take(engine: Engine, run: RunLog, now: datetime, limits: Limits) -> bool:
    """Start a promised attempt, or cancel it when its job was stopped since; False when it waits as it is."""
    job = run.job
    if engine.registry.find(job.task) is None:
        engine.foreign_tasks.add(job.task)
        return False
    if isinstance(job.policy, Unreadable):
        run.due_at = now + UNTIL_READABLE
        return True
    start_at = max(now, run.due_at or now)
    if run.trigger in COUNTED and not may_run(job, at=start_at):
        run.status, run.due_at, run.finished_at = Status.CANCELLED, None, now
        run.reason = f"the job is {job.job_state}"
        job.cancellations += 1
        return True
    if run.trigger in PATIENT and is_paused(job, at=start_at):
        return False
    if not (_is_free(job) and limits.admits_attempt(job, run)):
        return False
    start(engine, job, run, start_at)  # beside the plan, which stays as it is
    return True


def _is_free(job: Job) -> bool:
    """Whether one more run of the job may start; not where nobody can tell."""
    if isinstance(job.policy, Unreadable):
        return False
    policy = policy_of(job)
    return is_free(policy.overlap, job.active_runs, policy.max_concurrent)


def _write_jobs(engine: Engine, jobs: list[Job]) -> None:
    """Write what was decided, on condition that nobody changed the job since it was read."""
    for job in jobs:
        job.version += 1
    rows = ((*values_of(job), job.pk, job.version - 1) for job in jobs)
    update_rows(engine.using, Job, CLAIM_COLUMNS, ("id", "version"), rows)


def _write_runs(engine: Engine, runs: list[RunLog]) -> None:
    changes = ("token", "status", "due_at", "started_at", "finished_at", "instance_id", "worker", "reason")
    rows = ((*(getattr(run, name) for name in changes), run.pk, Status.PENDING) for run in runs)
    update_rows(engine.using, RunLog, changes, ("id", "status"), rows)
