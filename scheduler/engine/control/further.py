"""Further attempts: run the slots of failed runs once more, with the keyword arguments that the runs had."""

from collections import Counter
from collections.abc import Collection, Mapping
from datetime import datetime

from django.db.models import Max

from scheduler.arguments import checked_text
from scheduler.engine.base import Engine
from scheduler.engine.control.gate import ask_gate
from scheduler.engine.control.lookup import get_job
from scheduler.engine.control.runs import put_in_line, runnable_task
from scheduler.engine.db.shared_time import shared_now
from scheduler.engine.db.transactions import write_transaction
from scheduler.exceptions import InvalidOption
from scheduler.models import FAILURES, Job, RunLog, Status, Trigger
from scheduler.models.job import announce
from scheduler.models.primary import locked
from scheduler.registry import Task


def run_failed_again(name: str, run_ids: Collection[int], *, actor: str = "") -> tuple[list[RunLog], Counter[str]]:
    """Promise a further attempt of the slot of each of some failed runs of a job; oldest first, one by one.

    They run as a backfill does: while the job, its group or everything is paused they wait. Returns the attempts, and
    how many of the runs have none, by code: `not_failed`, `busy` (the run has not ended), `tried_since` (the slot has
    a later attempt), `for_users`, `invalid` (the task does not take the arguments) and `gone`. Raises Refused with code
    `gate_closed`, `not_registered`, `orphaned` or `invalid`, then of all of them.
    """
    engine, job = Engine(), get_job(name)
    checked_text("actor", actor)
    task = runnable_task(job)
    ask_gate(task)
    now = shared_now(engine.using)
    with write_transaction(engine.using):
        as_locked = locked(Job.objects.using(engine.using).filter(pk=job.pk)).first()  # the end of a run is seen
        if as_locked is None:
            return [], Counter({"gone": len(set(run_ids))})
        job = as_locked
        runs = RunLog.objects.using(engine.using).filter(job=job)
        found = list(runs.filter(pk__in=run_ids).defer("log", "error", "result").order_by("scheduled_for", "attempt"))
        slots = runs.filter(scheduled_for__in={run.scheduled_for for run in found}).order_by()
        last = dict(slots.values_list("scheduled_for").annotate(Max("attempt")))
        refused = Counter({"gone": len(set(run_ids)) - len(found)})
        rows = []
        for run in found:
            if code := _why_not(task, job, run, last):
                refused[code] += 1
            else:
                rows.append(_further(job, run, actor))
        put_in_line(engine, job, rows, now)
    announce(engine.using)
    return rows, +refused


def _why_not(task: Task, job: Job, run: RunLog, last: Mapping[datetime, int]) -> str:
    if run.is_living or run.status == Status.PENDING:
        return "busy"
    if run.status not in FAILURES:
        return "not_failed"
    if last.get(run.scheduled_for) != run.attempt:
        return "tried_since"
    if run.trigger == Trigger.ACTIVITY:
        return "for_users"
    kwargs = job.kwargs if run.kwargs is None else run.kwargs
    if not isinstance(kwargs, Mapping):
        return "invalid"
    try:
        task.refuse_call(kwargs)
    except InvalidOption:
        return "invalid"
    return ""


def _further(job: Job, run: RunLog, actor: str) -> RunLog:
    return RunLog.of(
        job,
        scheduled_for=run.scheduled_for,
        attempt=run.attempt + 1,
        trigger=Trigger.BACKFILL,
        kwargs=run.kwargs,
        actor=actor[:150],
    )
