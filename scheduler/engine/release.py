"""Release: give back runs that were claimed and not started, so that another instance starts them at once."""

from collections.abc import Collection, Sequence

from scheduler.engine.base import Claimed, Engine
from scheduler.engine.decide import may_run
from scheduler.engine.plan import set_next
from scheduler.engine.write import locked, update_rows, write_transaction
from scheduler.models import UNPLANNED, Job, RunLog, Status, Trigger


def release_runs(engine: Engine, claimed: Sequence[Claimed]) -> None:
    """Undo claims: a slot is due again as if nobody had taken it, a promised attempt is promised again.

    The tokens are void from then on. Whoever takes the slot next decides afresh whether it is too late.
    """
    by_id = {one.run.pk: one for one in claimed}
    with write_transaction(engine.using):
        rows = locked(RunLog.objects.using(engine.using).filter(pk__in=by_id, status=Status.RUNNING).order_by("pk"))
        runs = [run for run in rows if run.token == by_id[run.pk].run.token]
        wanted = {run.job_id for run in runs}
        jobs = locked(Job.objects.using(engine.using).filter(pk__in=wanted).order_by("pk"))
        by_job = {job.pk: job for job in jobs}
        for run in runs:
            _give_back(by_job[run.job_id], run)
        _write(engine, runs, by_job.values(), by_id)


def _is_from_plan(run: RunLog) -> bool:
    """Whether the run came from the plan of its job, which can have the slot back. All others were promised one by
    one, the further attempts of a postponed slot among them."""
    return run.trigger in (Trigger.SCHEDULE, Trigger.CATCH_UP) and run.attempt == 1


def _give_back(job: Job, run: RunLog) -> None:
    job.active_runs -= 1
    if job.next_start_at == UNPLANNED or not may_run(job):
        return
    slot = job.next_run_at
    if _is_from_plan(run):
        slot = run.coalesced_from or run.scheduled_for
        slot = min(slot, job.next_run_at or slot)
        job.last_slot = None
    set_next(job, slot)


def _write(engine: Engine, runs: list[RunLog], jobs: Collection[Job], claimed: dict[int, Claimed]) -> None:
    taken = [run.pk for run in runs if _is_from_plan(run)]
    RunLog.objects.using(engine.using).filter(pk__in=taken).delete()
    changes = ("status", "due_at", "started_at", "instance_id", "worker")
    promised = [run for run in runs if not _is_from_plan(run)]
    rows = ((Status.PENDING, claimed[run.pk].start_at, None, None, "", run.pk, run.token) for run in promised)
    update_rows(engine.using, RunLog, changes, ("id", "token"), rows)
    for job in jobs:
        job.version += 1
    columns = ("version", "active_runs", "last_slot", "next_run_at", "next_start_at")
    values = ((*(getattr(job, column) for column in columns), job.pk) for job in jobs)
    update_rows(engine.using, Job, columns, ("id",), values)
