"""Waiting: take promised attempts (retries, runs by hand, for users), each atomically, when their jobs are free."""

from datetime import datetime, timedelta

from django.db.models import F, Q, QuerySet

from scheduler.engine.base import Claimed, Engine
from scheduler.engine.claim import Claims, write_jobs
from scheduler.engine.claim_ahead import NO_REACH, Reach, Room, due_later
from scheduler.engine.db.bulk import LostRace, update_rows
from scheduler.engine.db.one_by_one import each_alone, together
from scheduler.engine.db.tally import count_runs
from scheduler.engine.db.transactions import write_transaction
from scheduler.engine.decide import start, why_cancelled
from scheduler.engine.finish import end_cancelled
from scheduler.engine.handover import attempts_of, hand_over, is_handed_over, taken
from scheduler.engine.limits import Limits, attempts_taken, read_limits
from scheduler.engine.plan_basis import is_paused, policy_of
from scheduler.engine.postponed import held_places, holds_a_place, let_go, look_again_at
from scheduler.engine.unable import put_run_aside, runs_aside, tell_others
from scheduler.exceptions import InvalidSchedule
from scheduler.models import Job, RunLog, Status, Trigger
from scheduler.models.primary import locked
from scheduler.models.stored import Unreadable
from scheduler.policy.overlap import Overlap, is_free


def claim_waiting(
    engine: Engine,
    now: datetime,
    *,
    ahead: timedelta,
    limit: int,
    run_id: int | None = None,
    room: Room | None = None,
    reach: Reach = NO_REACH,
    executor: str = "",
) -> Claims:
    """Take at most `limit` promised attempts (retries, runs by hand) whose jobs are free; only `run_id` when given.

    With `executor` only those kept for it, which are handed over and not started; without one only the others.

    Of those that are not due yet, `reach` lets more be taken. Of those for users no more are than there is `room` for,
    which without one is all.
    """
    if run_id is not None:
        claims: Claims | None = _claim_waiting(engine, now, ahead, limit, run_id, room, reach, executor)
    else:
        claims = together(lambda: _claim_waiting(engine, now, ahead, limit, None, room, reach, executor))
    if claims is None:
        claims = _claim_waiting_one_by_one(engine, now, ahead, limit, room, executor)
    tell_others(engine, now)
    return claims


def _claim_waiting_one_by_one(
    engine: Engine, now: datetime, ahead: timedelta, limit: int, room: Room | None, executor: str
) -> Claims:
    """Claim the others, and put aside the attempt that cannot be written: it stays promised."""
    claims = Claims()
    ready = _ready(engine, read_limits(engine), now, ahead, None, executor)
    runs = {run.pk: run for run in ready.only("pk", "job__name", "job__task").select_related("job")[:limit]}

    def claim(run: RunLog) -> int:
        nonlocal claims
        left = None if room is None else room.without(claims.runs)
        claims += _claim_waiting(engine, now, ahead, 1, run.pk, left, NO_REACH, executor)
        return claims.looked_at

    refused = each_alone(runs, claim, known=engine.unable.runs)
    for run, why in refused:
        put_run_aside(engine, run.pk, run.job, why, now)
    claims.looked_at += len(refused)
    return claims


def _claim_waiting(
    engine: Engine,
    now: datetime,
    ahead: timedelta,
    limit: int,
    run_id: int | None,
    room: Room | None,
    reach: Reach,
    executor: str,
) -> Claims:
    known = len(engine.foreign_tasks) + engine.unable.puts
    try:
        with write_transaction(engine.using):
            limits = read_limits(engine)
            ready = _ready(engine, limits, now, ahead, run_id, executor)
            decided, passed_over = _decide_by_room(engine, ready, now, limit, limits, room, reach)
            jobs = {run.job_id: run.job for run in decided}
            _write_runs(engine, decided)
            write_jobs(engine, [jobs[pk] for pk in sorted(jobs)])
            cancelled = [run for run in decided if run.status == Status.CANCELLED]
            count_runs(engine.using, cancelled)
            end_cancelled(engine, cancelled, now)
            for run in cancelled:
                let_go(engine, run, now)
    except LostRace:
        engine.lost_races += 1
        return Claims()
    looked_at = len(decided) + len(engine.foreign_tasks) + engine.unable.puts - known
    engine.unable.started(run.pk for run in decided)
    claims = Claims(looked_at=looked_at, passed_over=passed_over, met_another=limits.met_another)
    return _sorted_in(engine, decided, claims)


def _sorted_in(engine: Engine, decided: list[RunLog], claims: Claims) -> Claims:
    for run in decided:
        if run.status == Status.RUNNING:
            claims.runs.append(Claimed(run, engine.registry.get(run.job.task)))
        elif run.status == Status.PENDING and run.handed_at is not None:
            claims.handed.append(run)
    return claims


def _ready(
    engine: Engine, limits: Limits, now: datetime, ahead: timedelta, run_id: int | None, executor: str
) -> QuerySet[RunLog]:
    """The attempts that can start by all that the database can tell: those that cannot must not crowd them out.

    A backfill lets the slot of its job go first that has been waiting longer; else it would keep all of them waiting.
    """
    runs = RunLog.objects.using(engine.using)
    due = runs.ready(now + ahead)
    if run_id is not None:
        due = (due | runs.handed_over()).filter(pk=run_id)
    taken_here = attempts_taken(engine.takes, due)
    ready = limits.open_attempts(attempts_of(engine, taken_here, executor), now)
    ready = ready.filter(Q(job__active_runs=0) | Q(job__overlap=Overlap.ALLOW) | Q(trigger=Trigger.ACTIVITY))
    slot_is_first = Q(job__stale=False, job__wake_at__lte=F("due_at"))
    ready = ready.exclude(slot_is_first, trigger=Trigger.BACKFILL, handed_at__isnull=True)
    if run_id is not None:
        return ready
    aside = runs_aside(engine, now)
    return ready.exclude(pk__in=aside) if aside else ready


def _decide_by_room(
    engine: Engine, ready: QuerySet[RunLog], now: datetime, limit: int, limits: Limits, room: Room | None, reach: Reach
) -> tuple[list[RunLog], int]:
    """Decide on those for users and on the others apart, where the room of the first is bounded."""
    if room is None:
        return _decide_waiting(engine, ready, now, limit, limits, reach)
    others = ready.exclude(room.of_users())
    decided, passed_over = _decide_waiting(engine, others, now, limit, limits, reach)
    places = min(room.left, limit - len(decided))
    if places > 0:
        decided += _decide_waiting(engine, ready.filter(room.of_users()), now, places, limits)[0]
    return decided, passed_over


def _decide_waiting(
    engine: Engine, ready: QuerySet[RunLog], now: datetime, limit: int, limits: Limits, reach: Reach = NO_REACH
) -> tuple[list[RunLog], int]:
    """Decide on the first `limit` attempts, and on those in `reach`; where each has to wait, on those behind them.

    Returns them, and how many were passed over.
    """
    found = _lock_waiting(engine, ready, limit + reach.count)
    runs = reach.fitting(limit, found, (due_later(run.due_at, now, run.job) for run in found), engine.registry)
    decided = [run for run in runs if _take(engine, run, now, limits)]
    if runs and not decided:
        behind = ready.exclude(job_id__in=_full_jobs(engine)).exclude(pk__in=runs_aside(engine, now))
        decided = [run for run in _lock_waiting(engine, behind, limit) if _take(engine, run, now, limits)]
    return decided, len(found) - len(runs)


def _lock_waiting(engine: Engine, ready: QuerySet[RunLog], limit: int) -> list[RunLog]:
    """Lock attempts with their jobs, skipping those that are locked already."""
    ready = ready.exclude(job__task__in=engine.foreign_tasks)
    runs = list(locked(ready, skip_locked=True)[:limit])
    if not runs:
        return []
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
    job, start_at = run.job, now if run.handed_at else max(now, run.due_at or now)
    if not _is_ours(engine, run, now):
        return False
    if reason := why_cancelled(job, run, start_at):
        _cancel(run, reason, now)
        return True
    if run.cause.waits and is_paused(job, at=start_at):
        return False
    if not _is_free(job):
        return False
    if _is_behind_a_postponed(run, start_at, limits):
        run.due_at = look_again_at(job, now)  # a postponed attempt of the job goes first
        run.handed_at = run.stuck_at = run.instance_id = None
        return True
    if not limits.admits_attempt(job, run):
        return False
    _begin(engine, run, now, start_at)
    return True


def _begin(engine: Engine, run: RunLog, now: datetime, start_at: datetime) -> None:
    """Start a promised attempt, beside the plan, which stays as it is; or hand it over."""
    if is_handed_over(engine, run.job):
        hand_over(engine, run.job, run, now)
        return
    taken(run.job, run, now)
    run.waited_for, run.reason = run.reason, ""  # that of a closed gate, which will be asked again
    start(engine, run.job, run, start_at)


def _is_ours(engine: Engine, run: RunLog, now: datetime) -> bool:
    """Whether this process has the task of an attempt and can read its policy; others are left to those who can."""
    job = run.job
    if engine.registry.find(job.task) is None:
        engine.foreign_tasks.add(job.task)
        return False
    if isinstance(job.policy, Unreadable):
        put_run_aside(engine, run.pk, job, InvalidSchedule(job.policy.error, field="policy"), now)
        return False
    return True


def _cancel(run: RunLog, reason: str, now: datetime) -> None:
    run.status, run.due_at, run.finished_at, run.reason = Status.CANCELLED, None, now, reason
    run.job.cancellations += 1


def _is_behind_a_postponed(run: RunLog, start_at: datetime, limits: Limits) -> bool:
    """Whether attempts of the job that put themselves off hold all places that are left, and this is none of them."""
    job = run.job
    paused = limits.pauses(job) or is_paused(job, at=start_at)
    return not holds_a_place(job, run) and not _is_free(job, besides=held_places(job, paused=paused))


def _is_free(job: Job, *, besides: int = 0) -> bool:
    """Whether one more run of the job may start, `besides` the living ones too; not if its policy is unreadable."""
    if isinstance(job.policy, Unreadable):
        return False
    policy = policy_of(job)
    return is_free(policy.overlap, job.active_runs + besides, policy.max_concurrent)


def _write_runs(engine: Engine, runs: list[RunLog]) -> None:
    changes = (
        "token", "status", "due_at", "handed_at", "stuck_at", "started_at", "finished_at", "instance_id", "worker",
        "reason",
    )  # fmt: skip
    rows = ((*(getattr(run, name) for name in changes), run.pk, Status.PENDING) for run in runs)
    update_rows(engine.using, RunLog, changes, ("id", "status"), rows)
