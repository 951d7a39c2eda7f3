"""Release: give back runs that were claimed and not started, so that another instance starts them at once."""

from collections.abc import Collection, Sequence
from datetime import datetime

from scheduler.engine.base import Claimed, Engine
from scheduler.engine.bulk import update_rows
from scheduler.engine.decide import may_run
from scheduler.engine.finish import finish_runs
from scheduler.engine.outcome import Finished, Outcome, Settled
from scheduler.engine.plan import end_of_backoff, set_next
from scheduler.engine.write import write_transaction
from scheduler.exceptions import ConfigurationError
from scheduler.models import PATIENT, UNPLANNED, Job, RunLog, Status, Trigger
from scheduler.models.primary import locked

BESIDE_THE_PLAN = (Trigger.MANUAL, *PATIENT)


def release_runs(engine: Engine, claimed: Sequence[Claimed]) -> Settled:
    """Undo claims: a slot is due again as if nobody had taken it, a promised attempt is promised again.

    The tokens are void from then on. Whoever takes the slot next decides afresh whether it is too late. A run that was
    asked to stop meanwhile must start nowhere else: it ends, and what follows is returned.
    """
    by_id = {one.run.pk: one for one in claimed}
    with write_transaction(engine.using):
        rows = locked(RunLog.objects.using(engine.using).filter(pk__in=by_id, status=Status.RUNNING).order_by("pk"))
        held = [run for run in rows if run.token == by_id[run.pk].run.token]
        runs = [run for run in held if run.stop_requested_at is None]
        wanted = {run.job_id for run in runs}
        jobs = locked(Job.objects.using(engine.using).filter(pk__in=wanted).order_by("pk"))
        by_job = {job.pk: job for job in jobs}
        taken = {run.pk for run in reversed(runs) if _give_back(engine, by_job[run.job_id], run, by_id[run.pk].job)}
        _write(engine, runs, taken, by_job.values(), by_id)
    unwanted = [_cancelled(run) for run in held if run.stop_requested_at is not None]
    return finish_runs(engine, unwanted, in_doubt=True) if unwanted else Settled()


def _cancelled(run: RunLog) -> Finished:
    started_at = run.started_at or run.scheduled_for
    ended_at = max(run.stop_requested_at or started_at, started_at)
    reason = "asked to stop before it began"
    return Finished(
        run,
        Outcome(status=Status.CANCELLED, started_at=started_at, finished_at=ended_at, reason=reason, called=False),
    )


def _is_from_plan(job: Job, run: RunLog) -> bool:
    """Whether the plan of the job can have the slot back: the run came from it, and no later slot is decided yet.

    All others are promised one by one, the further attempts of a postponed slot among them.
    """
    is_newest = job.last_slot is None or job.last_slot <= run.scheduled_for
    return run.trigger in (Trigger.SCHEDULE, Trigger.CATCH_UP) and run.attempt == 1 and is_newest


def _give_back(engine: Engine, job: Job, run: RunLog, as_claimed: Job) -> bool:
    """Take the claim off the job; True when its plan has the slot back, so that no row of it may stay."""
    job.active_runs -= 1
    is_from_plan, slot = _is_from_plan(job, run), job.next_run_at
    if is_from_plan:
        first = run.coalesced_from or run.scheduled_for
        slot = min(first, slot or first)
        job.last_slot = _decided_before(engine, job, first)
    if job.next_start_at == UNPLANNED or job.orphaned_at:
        if is_from_plan and job.schedule == as_claimed.schedule and not job.paused_at:
            job.next_run_at = slot  # from there on it will be planned
        return is_from_plan
    try:
        if may_run(job):
            set_next(job, slot, not_before=end_of_backoff(job) if is_from_plan else job.next_start_at)
    except (ConfigurationError, ValueError, OverflowError):  # unreadable: the next pass sets it aside, and says so
        job.next_run_at, job.next_start_at = slot, UNPLANNED
    return is_from_plan


def _decided_before(engine: Engine, job: Job, slot: datetime) -> datetime | None:
    rows = RunLog.objects.using(engine.using).filter(job=job, scheduled_for__lt=slot)
    rows = rows.exclude(trigger__in=BESIDE_THE_PLAN).order_by("-scheduled_for")
    before: datetime | None = rows.values_list("scheduled_for", flat=True).first()
    return before


def _write(
    engine: Engine, runs: list[RunLog], taken: set[int], jobs: Collection[Job], claimed: dict[int, Claimed]
) -> None:
    RunLog.objects.using(engine.using).filter(pk__in=taken).delete()
    changes = ("status", "due_at", "started_at", "instance_id", "worker")
    promised = [run for run in runs if run.pk not in taken]
    rows = ((Status.PENDING, claimed[run.pk].start_at, None, None, "", run.pk, run.token) for run in promised)
    update_rows(engine.using, RunLog, changes, ("id", "token"), rows)
    for job in jobs:
        job.version += 1
    columns = ("version", "active_runs", "last_slot", "next_run_at", "next_start_at")
    values = ((*(getattr(job, column) for column in columns), job.pk) for job in jobs)
    update_rows(engine.using, Job, columns, ("id",), values)
