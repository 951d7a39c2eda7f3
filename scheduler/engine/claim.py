"""Claim: take due slots and promised attempts, each atomically, before anything starts."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from operator import attrgetter
from typing import Any

from django.db import IntegrityError
from django.db.models import QuerySet

from scheduler.engine.base import Claimed, Engine
from scheduler.engine.claim_ahead import NO_REACH, Reach, due_later
from scheduler.engine.db.bulk import LostRace, insert_runs, update_rows
from scheduler.engine.db.fast_read import read_rows
from scheduler.engine.db.one_by_one import each_alone, together
from scheduler.engine.db.tally import count_runs
from scheduler.engine.db.transactions import write_transaction
from scheduler.engine.decide import Decision, decide, step_over
from scheduler.engine.dependencies import tell_parents
from scheduler.engine.events import write_events
from scheduler.engine.finish import end_cancelled, stands_in_ledger
from scheduler.engine.handover import jobs_of
from scheduler.engine.limits import Limits, jobs_taken, read_limits
from scheduler.engine.postponed import holding
from scheduler.engine.replan import asked_at_once
from scheduler.engine.running import ask_to_stop
from scheduler.engine.sync.follow_code import take_back
from scheduler.engine.sync.served import served_elsewhere
from scheduler.engine.unable import (
    left_to_us,
    put_job_aside,
    put_unreadable_aside,
    tell_others,
)
from scheduler.models import AT_ONCE, Job, RunLog, Status
from scheduler.models.job_columns import PLAN
from scheduler.models.primary import locked

CLAIM_COLUMNS = (
    "version",
    "anchor_at", *PLAN, "plan_basis",
    "last_slot", "postponed_until", "token", "active_runs",
    "paused_at", "paused_until", "paused_by", "pause_reason", "orphaned_at", "problem", "skips", "misses",
    "cancellations",
)  # fmt: skip
values_of = attrgetter(*CLAIM_COLUMNS)
PLANNED_AT_ONCE = 500
UNTIL_WRITTEN = timedelta(seconds=1)
"""How long another writer may take to write the log of a run, or its end."""


@dataclass(slots=True)
class Claims:
    """What one pass took: runs to start, and rows that record slots which will not run."""

    runs: list[Claimed] = field(default_factory=list)
    not_run: list[RunLog] = field(default_factory=list)
    resumed: list[Job] = field(default_factory=list)
    looked_at: int = 0
    asked_to_stop: list[int] = field(default_factory=list)
    passed_over: int = 0
    """How many were read beside what was taken: they are due, or too long to be claimed ahead."""
    handed: list[RunLog] = field(default_factory=list)
    """Promised attempts that are to be handed over now."""
    planned: list[Job] = field(default_factory=list)
    """The jobs as they were written."""
    met_another: bool = False
    """Another instance was counting the places of a group: what was not taken may have a place in a moment."""

    def __iadd__(self, other: "Claims") -> "Claims":
        self.runs += other.runs
        self.not_run += other.not_run
        self.resumed += other.resumed
        self.looked_at += other.looked_at
        self.asked_to_stop += other.asked_to_stop
        self.passed_over += other.passed_over
        self.handed += other.handed
        self.planned += other.planned
        self.met_another |= other.met_another
        return self


Decide = Callable[[Engine, Job, datetime, Limits], Decision]


def claim_due(
    engine: Engine, now: datetime, *, ahead: timedelta, limit: int, reach: Reach = NO_REACH, executor: str = ""
) -> Claims:
    """Take at most `limit` jobs that are due until `now + ahead`. A lost race is counted and leaves them due.

    With `executor` only those whose slots are promised for it, without one only the others; of the groups that this
    process takes.

    Of those that are not due yet, `reach` lets more be taken. A pause ends when its time has come, and not ahead of it.
    """
    due = jobs_taken(engine.takes, Job.objects.using(engine.using).due(now + ahead))
    due = jobs_of(engine, due, executor)
    due = due.exclude(paused_until__gt=now, wake_at__gt=now)
    return _claim_all(engine, left_to_us(engine, due, now), now, limit, reach)


def plan_jobs(engine: Engine, now: datetime) -> Claims:
    """Plan jobs that are new or were changed, many at once: that takes no worker, and due work waits for it."""
    unplanned = Job.objects.using(engine.using).filter(wake_at=AT_ONCE)
    return _claim_all(engine, left_to_us(engine, unplanned, now), now, PLANNED_AT_ONCE)


def plan_these(engine: Engine, unplanned: QuerySet[Job], now: datetime) -> Claims:
    """Plan some jobs whose tasks are registered here, in the transaction of the caller, who holds their locks.

    A plan takes no place in a group: to count them would lock the groups until the caller commits, for all processes.
    """
    return _claim(engine, unplanned, now, PLANNED_AT_ONCE, decide, limits=Limits())


def _claim_all(engine: Engine, due: QuerySet[Job], now: datetime, limit: int, reach: Reach = NO_REACH) -> Claims:
    """Claim the jobs at once, or else one by one: one that the database does not take costs no other its turn."""
    claims = together(lambda: _claim(engine, due, now, limit, decide, reach))
    if claims is None:
        claims = _claim_one_by_one(engine, due, now, limit)
    tell_others(engine, now)
    return claims


def _claim(
    engine: Engine,
    due: QuerySet[Job],
    now: datetime,
    limit: int,
    decide: Decide,
    reach: Reach = NO_REACH,
    limits: Limits | None = None,
) -> Claims:
    try:
        with write_transaction(engine.using):
            limits = read_limits(engine) if limits is None else limits
            found = read_rows(locked(limits.open_jobs(due), skip_locked=True)[: limit + reach.count])
            ahead = (due_later(job.wake_at, now, job) for job in found)
            jobs = reach.fitting(limit, found, ahead, engine.registry)
            with asked_at_once(jobs):
                decided = [decide(engine, job, now, limits) for job in jobs]
            decisions = [decision for decision in decided if not decision.waits]
            stopped = _write(engine, decisions, now)
    except LostRace:
        engine.lost_races += 1
        return Claims()
    if any(decision.job.orphaned_at for decision in decisions):
        take_back(engine, served_elsewhere(engine, now))  # an instance that has just joined looked too early
    claims = Claims(asked_to_stop=stopped, met_another=limits.met_another, passed_over=len(found) - len(jobs))
    claims = _sorted_out(engine, decisions, claims)
    claims.looked_at += put_unreadable_aside(engine, decided, now)
    return claims


def _write(engine: Engine, decisions: list[Decision], now: datetime) -> list[int]:
    """Write jobs and rows, after those that are replaced have made room; returns the runs that were asked to stop."""
    replacing = [decision for decision in decisions if decision.replaces]
    stopped = _make_room(engine, [decision.job for decision in replacing], now)
    dropped = _drop_postponed(engine, replacing, now)
    jobs = [decision.job for decision in decisions]
    write_jobs(engine, jobs)
    write_events(engine.using, [event for decision in decisions for event in decision.events])
    end_cancelled(engine, dropped, now)
    rows = [row for decision in decisions for row in decision.rows]
    insert_runs(engine.using, rows)
    count_runs(engine.using, rows)
    count_runs(engine.using, dropped, Status.CANCELLED)
    tell_parents(engine.using, jobs)
    return stopped


def _make_room(engine: Engine, jobs: list[Job], now: datetime) -> list[int]:
    """Ask the living runs of jobs to stop; if a row is being written just now, look at its job again soon."""
    asked = ask_to_stop(engine, [job.pk for job in jobs], now)
    if jobs:
        unasked = RunLog.objects.using(engine.using).living().filter(job__in=jobs, stop_requested_at__isnull=True)
        to_ask = set(unasked.values_list("job_id", flat=True))
        for job in jobs:
            if job.pk in to_ask:
                job.wake_at = now + UNTIL_WRITTEN
    return asked


def _drop_postponed(engine: Engine, decisions: list[Decision], now: datetime) -> list[RunLog]:
    """Cancel the attempts of jobs that put themselves off, and that a newer slot replaces.

    Where that slot is itself kept for an executor, it holds the place from now on.
    """
    dropped = []
    for decision in decisions:
        job = decision.job
        if job.postponed_until is not None:
            runs = list(locked(holding(job), skip_locked=True))
            for run in runs:
                run.job = job
            dropped += runs
            job.cancellations += len(runs)
            kept = [row.due_at for row in decision.rows if row.status == Status.PENDING]
            job.postponed_until = max(kept, default=None)
    rows = RunLog.objects.using(engine.using).filter(pk__in=[run.pk for run in dropped])
    if dropped:
        rows.update(status=Status.CANCELLED, due_at=None, finished_at=now, reason="replaced by a newer slot")
    return dropped


def _claim_one_by_one(engine: Engine, due: QuerySet[Job], now: datetime, limit: int) -> Claims:
    """Claim the others, and put aside the job that cannot be written: it stays due, for others and for later."""
    claims = Claims()
    jobs = {job.pk: job for job in due.only("pk", "name", "task", "version")[:limit]}

    def claim(job: Job) -> int:
        nonlocal claims
        claims += _claim_one(engine, due.filter(pk=job.pk), now)
        return claims.looked_at

    refused = each_alone(jobs, claim, known=engine.unable.jobs)
    for job, why in refused:
        put_job_aside(engine, job, why, now)
    claims.looked_at += len(refused)
    return claims


def _claim_one(engine: Engine, one: QuerySet[Job], now: datetime) -> Claims:
    """Claim one job, or step over its slot when that stands in the ledger already.

    No other row of the ledger is a reason to pass a slot: what else the database refuses may be taken later.
    """
    tried: list[Decision] = []

    def remembered(*given: Any) -> Decision:
        tried.append(decide(*given))
        return tried[-1]

    try:
        return _claim(engine, one, now, 1, remembered)
    except IntegrityError:
        rows = [row for decision in tried for row in decision.rows]
        standing = [row for row in rows if stands_in_ledger(engine.using, row)]
        if not standing:
            raise
        return _claim(engine, one, now, 1, step_over if rows[-1] in standing else _without_missed)


def _without_missed(engine: Engine, job: Job, now: datetime, limits: Limits) -> Decision:
    """Decide on a job whose missed slots stand in the ledger already, while the slot that is to run does not."""
    decision = decide(engine, job, now, limits)
    for row in decision.rows[:-1]:
        job.misses -= 1 + row.coalesced
    decision.rows = decision.rows[-1:]
    return decision


def _sorted_out(engine: Engine, decisions: list[Decision], claims: Claims) -> Claims:
    claims.looked_at = len(decisions)
    claims.planned = [decision.job for decision in decisions]
    for decision in decisions:
        claims.resumed += [decision.job] if decision.resumed else []
        for row in decision.rows:
            if row.status == Status.RUNNING:
                claims.runs.append(Claimed(row, engine.registry.get(decision.job.task)))
            elif row.status != Status.PENDING:
                claims.not_run.append(row)
    return claims


def write_jobs(engine: Engine, jobs: list[Job]) -> None:
    """Write what was decided, on condition that the job has not changed since it was read."""
    for job in jobs:
        job.version += 1
    rows = ((*values_of(job), job.pk, job.version - 1) for job in jobs)
    update_rows(engine.using, Job, CLAIM_COLUMNS, ("id", "version"), rows)
