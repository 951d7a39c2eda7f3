"""Release: give back runs that were claimed and not started, so that another instance starts them at once."""

import logging
from collections.abc import Collection, Sequence
from datetime import datetime

from django.db.models import OuterRef, Subquery
from django.db.models.functions import Coalesce

from scheduler.engine.base import Claimed, Engine
from scheduler.engine.db.bulk import update_rows
from scheduler.engine.db.one_by_one import each_alone, together
from scheduler.engine.db.transactions import write_transaction
from scheduler.engine.finish import finish_runs
from scheduler.engine.outcome import Finished, Outcome, Settled
from scheduler.engine.plan import Plan, released, stale
from scheduler.engine.postponed import held_until
from scheduler.engine.replan import asked_at_once, runs_left
from scheduler.engine.tasks.ends import give_back
from scheduler.exceptions import ConfigurationError
from scheduler.models import LONG_AGO, Job, RunLog, Status, Trigger
from scheduler.models.job_columns import PLAN
from scheduler.models.primary import locked

logger = logging.getLogger("scheduler")


def release_runs(engine: Engine, claimed: Sequence[Claimed]) -> Settled:
    """Undo claims: a slot is due again as if it had never been taken, a promised attempt is promised again.

    The tokens are void from then on. The next claim of the slot decides again whether it is too late. A run that has
    been asked to stop must not start elsewhere: it ends, and what follows is returned.
    """
    by_id = {one.run.pk: one for one in claimed}
    with write_transaction(engine.using):
        give_back(engine, claimed)
        held = _lock_held(engine, by_id)
        before = _decided_before(engine, held)
        runs = [run for run in held if run.stop_requested_at is None]
        jobs = _lock_jobs(engine, runs)
        with asked_at_once(jobs.values()):
            taken = {run.pk for run in reversed(runs) if _give_back(jobs[run.job_id], run, by_id[run.pk].job, before)}
        _write(engine, runs, taken, jobs.values(), by_id)
    unwanted = [_cancelled(run) for run in held if run.stop_requested_at is not None]
    return finish_runs(engine, unwanted, in_doubt=True) if unwanted else Settled()


def _lock_held(engine: Engine, claimed: dict[int, Claimed]) -> list[RunLog]:
    """Lock the runs whose claim still holds. They know what they had waited for, which no column keeps."""
    rows = locked(RunLog.objects.using(engine.using).filter(pk__in=claimed, status=Status.RUNNING).order_by("pk"))
    held = [run for run in rows if run.token == claimed[run.pk].run.token]
    for run in held:
        run.waited_for = claimed[run.pk].run.waited_for
    return held


def _lock_jobs(engine: Engine, runs: Sequence[RunLog]) -> dict[int, Job]:
    wanted = {run.job_id for run in runs}
    return {job.pk: job for job in locked(Job.objects.using(engine.using).filter(pk__in=wanted).order_by("pk"))}


def release_each(engine: Engine, claimed: Sequence[Claimed]) -> tuple[Settled, list[Claimed]]:
    """As `release_runs`; those that the database refuses cost no other its release, and are returned."""
    released = together(lambda: release_runs(engine, claimed))
    if released is not None:
        return released, []
    settled = Settled()

    def release(one: Claimed) -> bool:
        nonlocal settled
        settled += release_runs(engine, [one])
        return True

    refused = each_alone({one.run.pk: one for one in claimed}, release)
    for one, why in refused:
        text, job, pk = "Run %s of %r cannot be given back, which is tried again: %s", one.job.name, one.run.pk
        logger.error(text, pk, job, why, extra={"action": "run_kept", "job": job, "run": pk})
    return settled, [one for one, _ in refused]


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

    All others are promised one by one, the further attempts of a postponed slot among them, and what waited for its
    gate: of the slot of such a run it would be said that it comes late.
    """
    is_newest = job.last_slot is None or job.last_slot <= run.scheduled_for
    is_first = run.attempt == 1 and not run.waited_for
    return run.cause.by_plan and is_first and is_newest


def _give_back(job: Job, run: RunLog, as_claimed: Job, before: dict[int, datetime | None]) -> bool:
    """Take the claim off the job; True when its plan has the slot back, so that no row of it may stay."""
    job.active_runs = max(0, job.active_runs - 1)
    slot = (run.coalesced_from or run.scheduled_for) if _is_from_plan(job, run) else None
    plan, same_slots = Plan.of(job), job.schedule == as_claimed.schedule
    try:
        plan = released(plan, job, slot, before[run.pk], same_slots=same_slots, left=runs_left(job))
    except (ConfigurationError, ValueError, OverflowError):  # unreadable: the next pass sets it aside, and says so
        last_slot = before[run.pk] if slot else plan.last_slot
        due = min(filter(None, (slot, plan.next_run_at)), default=None)
        plan = stale(plan._replace(last_slot=last_slot), due)
    plan.onto(job)
    return slot is not None


def _decided_before(engine: Engine, runs: Sequence[RunLog]) -> dict[int, datetime | None]:
    """Return the slot that the plan decided before each of the runs. All are asked for at once: there may be many."""
    rows = RunLog.objects.using(engine.using)
    first = Coalesce(OuterRef("coalesced_from"), OuterRef("scheduled_for"))
    decided = rows.filter(job=OuterRef("job"), scheduled_for__lt=first).filter(trigger__in=Trigger.which("counts"))
    newest = Subquery(decided.order_by("-scheduled_for").values("scheduled_for")[:1])
    return dict(rows.filter(pk__in=[run.pk for run in runs]).values_list("pk", newest))


def _write(
    engine: Engine, runs: list[RunLog], taken: set[int], jobs: Collection[Job], claimed: dict[int, Claimed]
) -> None:
    RunLog.objects.using(engine.using).filter(pk__in=taken).delete()
    changes = ("status", "reason", "due_at", "started_at", "instance_id", "worker")
    promised = [(run, claimed[run.pk].start_at) for run in runs if run.pk not in taken]
    rows = ((Status.PENDING, run.waited_for, at, None, None, "", run.pk, run.token) for run, at in promised)
    update_rows(engine.using, RunLog, changes, ("id", "token"), rows)
    with_slot = {run.job_id for run in runs if run.pk in taken}
    for job in jobs:
        job.version += 1
        _mark(job, has_its_slot_back=job.pk in with_slot)
    columns = ("version", "active_runs", "last_slot", "postponed_until", *PLAN)
    values = ((*(getattr(job, column) for column in columns), job.pk) for job in jobs)
    update_rows(engine.using, Job, columns, ("id",), values)


def _mark(job: Job, *, has_its_slot_back: bool) -> None:
    """Note until when attempts that wait hold a place of the job, one that was given back among them.

    Where there is none, a plan that has its slot back has no mark: by that it would write off the slot.
    """
    before = job.postponed_until
    if before is not None or not has_its_slot_back:
        job.postponed_until = before or LONG_AGO
        job.postponed_until = held_until(job) or (None if has_its_slot_back else before)
