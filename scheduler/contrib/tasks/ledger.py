"""Ledger: the attempts of one task."""

from django.db.models import QuerySet

from scheduler.engine.base import Engine
from scheduler.models import RunLog, Trigger
from scheduler.models.result_ids import slot_of

LONG = ("log", "result", "totals", "progress")


def attempts_of(result_id: object, alias: str) -> list[RunLog]:
    """Return the attempts of a result, the oldest first, by one query; none for what is no id of this backend."""
    attempts = list(rows_of(result_id).order_by("attempt").defer(*LONG))
    of_alias = attempts and isinstance(attempts[0].kwargs, dict) and attempts[0].kwargs.get("backend") == alias
    return attempts if of_alias else []


def rows_of(result_id: object) -> QuerySet[RunLog]:
    """Return the rows of a result, of any alias; none for what is no id."""
    runs: QuerySet[RunLog] = RunLog.objects.using(Engine().using)
    meant = slot_of(result_id)
    return runs.none() if meant is None else runs.filter(job=meant[0], scheduled_for=meant[1], trigger=Trigger.TASK)


def attempts_up_to(run: RunLog) -> list[RunLog]:
    """Return the attempts of a task up to one of them, which is as this process has it."""
    if run.attempt == 1:
        return [run]
    rows = RunLog.objects.using(Engine().using).filter(job=run.job_id, scheduled_for=run.scheduled_for)
    earlier = rows.filter(attempt__lt=run.attempt).order_by("attempt").defer(*LONG)
    return [*earlier, run]
