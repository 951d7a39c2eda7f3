"""Runs people ask for: now, for slots of the past, or no longer."""

from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import datetime
from itertools import islice
from typing import Any, Literal

from django.db.models import F, Max, Q

from scheduler.arguments import checked_flag, checked_instant, checked_kwargs, checked_text, checked_whole
from scheduler.engine.base import Engine
from scheduler.engine.control.calls import refuse_wrong_templates
from scheduler.engine.control.forusers import refuse_without_ids
from scheduler.engine.control.gate import ask_gate
from scheduler.engine.control.keyed import Begun, KeyedRequest
from scheduler.engine.control.lookup import get_job
from scheduler.engine.db.bulk import insert_runs
from scheduler.engine.db.shared_time import shared_now
from scheduler.engine.db.tally import count_runs
from scheduler.engine.db.transactions import write_transaction
from scheduler.engine.finish import end_cancelled, go_on_with_backfill, promote_backfill
from scheduler.engine.plan_basis import is_beginning, policy_of, schedule_of
from scheduler.engine.postponed import held_places, let_go
from scheduler.engine.retention.kept_since import complete_since, free_slot
from scheduler.engine.views.datetimes import said, shifted
from scheduler.engine.views.pauses import paused_groups
from scheduler.exceptions import InvalidOption, InvalidSchedule, Refused, UnknownRun
from scheduler.models import EVERYTHING, FAILURES, RAN, Job, RunLog, Status, Trigger
from scheduler.models.carriers import is_carrier
from scheduler.models.idempotency_key import IdempotencyKey
from scheduler.models.job import announce
from scheduler.models.primary import locked
from scheduler.models.stored import Unreadable
from scheduler.policy.misfire import RESOLUTION
from scheduler.policy.overlap import is_free
from scheduler.registry import Task, registry
from scheduler.safetext import shown
from scheduler.signals import after_commit, runs_asked_to_stop

MOST_BACKFILLED = 1000
BEGUN = (*RAN, Status.CANCELLED)


def run_now(name: str, *, kwargs: Mapping[str, Any] | None = None, actor: str = "") -> RunLog:
    """Promise a run of the job at once, beside its cadence; returns its row, still pending.

    Raises Refused with code `busy`, `gate_closed`, `not_registered`, `orphaned` or `invalid`; InvalidOption when the
    job's runs are for users, and the keyword arguments name none, or when its function does not take them or their
    placeholders cannot be filled in.
    """
    return _run_now(name, kwargs, actor, None)


def run_now_once(keyed: KeyedRequest, name: str, *, kwargs: Mapping[str, Any] | None = None, actor: str = "") -> RunLog:
    """As `run_now`; sent again with the same key, it returns the run that it promised then, as that is by now."""
    return keyed.once(lambda begun: _run_now(name, kwargs, actor, begun), _run_of)


def _run_now(name: str, kwargs: Mapping[str, Any] | None, actor: str, begun: Begun | None) -> RunLog:
    engine = Engine()
    job = get_job(name)
    own = None if kwargs is None else checked_kwargs(kwargs)
    checked_text("actor", actor)
    task = runnable_task(job)
    refuse_without_ids(job, own)
    task.refuse_call(job.kwargs if own is None else own)
    if own is not None:
        refuse_wrong_templates(job.policy, own)
    ask_gate(task)
    with write_transaction(engine.using):
        job = locked(Job.objects.using(engine.using).filter(pk=job.pk)).get()
        _refuse_when_busy(job)
        run = _promise(engine, job, own, actor)
        if begun is not None:
            begun.remember(run.pk)
    announce(engine.using)
    return run


def _run_of(before: IdempotencyKey) -> RunLog:
    run = RunLog.objects.using(Engine().using).select_related("job").filter(pk=before.made).first()
    if run is None:
        raise UnknownRun(f"The run {before.made}, which this key made, has been removed.")
    return run


def cancel_run(run_id: int, *, actor: str = "") -> RunLog:
    """Cancel a run: one that waits never starts, one that runs is asked to stop and ends when its task agrees.

    Raises UnknownRun, or Refused with code `ended`.
    """
    engine = Engine()
    runs = RunLog.objects.using(engine.using).filter(pk=checked_whole("run_id", run_id))
    reason = f"cancelled by {actor}" if checked_text("actor", actor) else "cancelled"
    now = shared_now(engine.using)
    with write_transaction(engine.using):
        run = locked(runs.select_related("job")).first()
        if run is None:
            raise UnknownRun(f"There is no run {run_id}.")
        if run.status == Status.PENDING:
            ended = {"status": Status.CANCELLED, "due_at": None, "priority": None, "finished_at": now}
            runs.update(**ended, reason=reason[:500])
            _end_promised(engine, run, now)
        elif run.is_living:
            runs.filter(stop_requested_at__isnull=True).update(stop_requested_at=now, note=reason[:500])
        else:
            raise Refused(f"Run {run_id} has ended already: it {run.get_status_display()}.", code="ended")
    if run.is_living:
        after_commit(runs_asked_to_stop, RunLog, using=engine.using, run_ids=[run_id])
    return runs.select_related("job").get()


def _end_promised(engine: Engine, run: RunLog, now: datetime) -> None:
    """Note that a promised attempt comes to no end of its own. The job of a task keeps no account of it."""
    if run.cause.carried:
        count_runs(engine.using, [run], Status.CANCELLED)
        return
    Job.objects.using(engine.using).filter(pk=run.job_id).update(cancellations=F("cancellations") + 1)
    count_runs(engine.using, [run], Status.CANCELLED)
    end_cancelled(engine, [run], now)
    let_go(engine, run, now)
    if run.due_at is not None:  # it was the next of its backfill; those behind it still wait for their turn
        promote_backfill(engine, [run], now)


def backfill(
    name: str,
    start: datetime,
    end: datetime,
    *,
    only: Literal["missing", "failed", "all"] = "missing",
    dry_run: bool = False,
    actor: str = "",
) -> list[RunLog]:
    """Promise runs for the slots from `start` to `end` (aware, both included), oldest first, one by one.

    `only="missing"` takes slots that never ran, `"failed"` those whose last attempt failed, `"all"` every slot.
    Slots to come, and those that are due and still to be decided, are left to the plan. While the job, its group or
    everything is paused they wait. With `dry_run` nothing is written. Raises InvalidOption for more than 1,000 slots.
    """
    engine, job = Engine(), get_job(name)
    now = shared_now(engine.using)
    start, end = checked_instant("start", start), checked_instant("end", end)
    checked_flag("dry_run", dry_run)
    checked_text("actor", actor)
    if only not in ("missing", "failed", "all"):
        raise InvalidOption(f"only is {shown(only)}; it must be 'missing', 'failed' or 'all'.")
    task = runnable_task(job)
    task.refuse_call(job.kwargs)
    ask_gate(task)
    with write_transaction(engine.using):
        # Locked, so that the end of a run cannot pass us by.
        job = locked(Job.objects.using(engine.using).filter(pk=job.pk)).get()
        slots = list(islice(_slots(job, start, min(end, now)), MOST_BACKFILLED + 1))
        if len(slots) > MOST_BACKFILLED:
            raise InvalidOption(f"There are more than {MOST_BACKFILLED} slots from start to end; take a shorter time.")
        rows = [_backfill_row(job, slot, attempt, actor) for slot, attempt in _chosen(engine, job, slots, only)]
        if not dry_run:
            put_in_line(engine, job, rows, now)
    announce(engine.using)
    return rows


def put_in_line(engine: Engine, job: Job, rows: list[RunLog], now: datetime) -> None:
    """Promise the runs of a backfill behind those that wait. Where none of these is due, their turn comes first."""
    insert_runs(engine.using, rows)
    first = go_on_with_backfill(engine, job.pk, now)
    for row in rows:
        row.due_at = now if row.pk == first else None


def _slots(job: Job, start: datetime, end: datetime) -> Iterator[datetime]:
    schedule = schedule_of(job)
    if not schedule.has_grid:
        return  # its slots follow from its runs, or from when it is enabled: there are none without that
    slot = schedule.next_after(shifted(start, -RESOLUTION))
    while slot is not None and slot <= end and not (job.next_run_at and slot >= job.next_run_at):
        if not is_beginning(job, slot):
            yield slot
        slot = schedule.next_after(slot)


def _chosen(engine: Engine, job: Job, slots: list[datetime], only: str) -> Iterator[tuple[datetime, int]]:
    """Yield the slots to run with the number of their next attempt."""
    runs = RunLog.objects.using(engine.using).filter(job=job, scheduled_for__in=slots)
    in_flight = Q(status=Status.PENDING) | Q(due_at__isnull=False)
    undecided = set(runs.filter(in_flight).values_list("scheduled_for", flat=True))
    last = dict(runs.values_list("scheduled_for").annotate(Max("attempt")).order_by())
    statuses = {(at, attempt): status for at, attempt, status in runs.values_list("scheduled_for", "attempt", "status")}
    gone = set() if only == "all" else _may_have_run(engine, job, slots, last.keys())
    for slot in slots:
        if slot in undecided or slot in gone:
            continue
        attempt = last.get(slot, 0)
        status = statuses.get((slot, attempt))
        wanted = {
            "missing": status not in BEGUN,
            "failed": status in FAILURES,
            "all": True,
        }
        if wanted[only]:
            yield slot, attempt + 1


def _may_have_run(engine: Engine, job: Job, slots: list[datetime], recorded: Collection[datetime]) -> set[datetime]:
    """Return the slots of which a run may have been removed by retention.

    It keeps outcomes for different times: what is left of a slot may be its skip, or its failed first attempt, where
    the success that followed is gone. What has failed or was cancelled is too rare to tell since when it is complete:
    there a slot that has, or is counted on, a row of its own is taken for what that says.
    """
    since = complete_since(engine.using, job)
    ran_since = max((since[status] for status in BEGUN if status in since), default=None)
    if ran_since is None:
        return set()
    succeeded_since = since.get(Status.SUCCEEDED)
    old = {slot for slot in slots if (job.created_at or slot) <= slot < ran_since}
    untold = old.difference(recorded, _counted_on_others(engine, job, slots))
    return untold | {slot for slot in old if succeeded_since and slot < succeeded_since}


def _counted_on_others(engine: Engine, job: Job, slots: list[datetime]) -> Iterator[datetime]:
    """Yield those of the slots, which are in order, that are counted on the row of a later one."""
    if not slots:
        return
    rows = RunLog.objects.using(engine.using).filter(job=job, scheduled_for__gt=slots[0], coalesced_from__lte=slots[-1])
    ranges: Iterable[Any] = rows.order_by().values_list("coalesced_from", "scheduled_for")
    for first, last in ranges:
        yield from slots[bisect_left(slots, first) : bisect_left(slots, last)]


def _backfill_row(job: Job, slot: datetime, attempt: int, actor: str) -> RunLog:
    return RunLog.of(job, scheduled_for=slot, attempt=attempt, trigger=Trigger.BACKFILL, actor=actor[:150])


def runnable_task(job: Job) -> Task:
    """Return the task of a job that can run here; raises Refused for any other job."""
    if job.orphaned_at:
        raise Refused(f"{job.name!r} is orphaned: {job.problem}", code="orphaned")
    task = registry.find(job.task)
    if task is None:
        text = f"The task {job.task!r} of {job.name!r} is not registered in this process."
        raise Refused(f"{text}{registry.told_failures()}", code="not_registered")
    if isinstance(job.policy, Unreadable):
        raise Refused(f"{job.name!r} cannot run: {job.policy.error}", code="invalid")
    if is_carrier(job):
        raise Refused(f"{job.name!r} only carries tasks that were enqueued: enqueue its function.", code="invalid")
    return task


def _refuse_when_busy(job: Job) -> None:
    asked_already = job.runs.waiting().filter(trigger=Trigger.MANUAL)
    policy, places = policy_of(job), job.active_runs + _held_places(job)
    if is_free(policy.overlap, places, policy.max_concurrent) and not asked_already.exists():
        return
    run = job.runs.living().order_by("due_at").first() or asked_already.first() or job.runs.postponed().first()
    raise Refused(f"{job.name!r} is busy{_with_which_run(run) if run else ''}.", code="busy")


def _with_which_run(run: RunLog) -> str:
    if run.attempt > 1 and run.status == Status.PENDING:
        return f": its next attempt is due at {said(run.due_at)}, run {run.pk}"
    since = f" since {said(run.started_at)}" if run.started_at else ""
    return f"{since}, run {run.pk}"


def _held_places(job: Job) -> int:
    """Count the places that postponed attempts hold, save those that a pause keeps from starting."""
    if job.postponed_until is None:
        return 0
    held = paused_groups().keys() & {job.in_group, EVERYTHING}
    return held_places(job, paused=job.paused_at is not None or bool(held))


def _is_slot(job: Job, at: datetime) -> bool:
    try:
        return schedule_of(job).next_after(at - RESOLUTION) == at
    except InvalidSchedule:
        return False


def _promise(engine: Engine, job: Job, kwargs: dict[str, Any] | None, actor: str) -> RunLog:
    """Write the row of a run by hand. Its slot is the moment it was asked for, moved on if the schedule or the ledger
    has that one: the cadence stays untouched."""
    now = slot = shared_now(engine.using)
    while _is_slot(job, slot := free_slot(engine.using, job, slot)):
        slot += RESOLUTION
    run = RunLog.of(
        job,
        scheduled_for=slot,
        trigger=Trigger.MANUAL,
        due_at=now,
        kwargs=kwargs,
        actor=actor[:150],
    )
    insert_runs(engine.using, [run])
    return run
