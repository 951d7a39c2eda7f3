"""Promises: attempts that wait to be claimed, after the clock was set back."""

from datetime import datetime, timedelta

from django.db.models import OuterRef, Subquery

from scheduler.engine.base import Engine
from scheduler.engine.db.bulk import update_rows
from scheduler.engine.db.transactions import write_transaction
from scheduler.engine.plan_basis import policy_of
from scheduler.exceptions import ConfigurationError
from scheduler.models import RunLog, Status, Trigger
from scheduler.models.primary import locked

AGAIN = {trigger.cause.retried_as for trigger in Trigger}
FAILED = (Status.FAILED, Status.TIMED_OUT, Status.SUCCEEDED)
"""How an attempt ended that a retry follows; one that succeeded had errors."""


def hurry_promises(engine: Engine, now: datetime) -> int:
    """Let no promised attempt wait longer from now than it was meant to; returns how many are due earlier."""
    before = RunLog.objects.using(engine.using).filter(
        job=OuterRef("job"), scheduled_for=OuterRef("scheduled_for"), attempt=OuterRef("attempt") - 1
    )
    waiting = RunLog.objects.using(engine.using).waiting().filter(due_at__gt=now).select_related("job").order_by("pk")
    waiting = waiting.annotate(
        status_before=Subquery(before.values("status")), ended_before=Subquery(before.values("finished_at"))
    )
    with write_transaction(engine.using):
        due = [(_due_by(run, now), run) for run in locked(waiting)]
        rows = [(due_at, run.pk) for due_at, run in due if due_at < run.due_at]
        update_rows(engine.using, RunLog, ("due_at",), ("id",), rows)
    return len(rows)


def _due_by(run: RunLog, now: datetime) -> datetime:
    """Return when an attempt is due by the clock that says `now`."""
    if run.handed_at is not None:
        return _handed_again_by(run, now)
    status, ended = run.status_before, run.ended_before  # type: ignore[attr-defined]
    if status == Status.POSTPONED:
        return _postponed_by(run, ended, now)
    if run.trigger in AGAIN and status in FAILED:
        return now + _backoff(run)
    if run.cause.by_plan:  # given back before it began: its slot may be to come again
        slot: datetime = run.scheduled_for
        return max(now, slot)
    return now


def _handed_again_by(run: RunLog, now: datetime) -> datetime:
    """An attempt that was sent is sent again when no process has taken it in time, and not because of the clock."""
    try:
        return now + policy_of(run.job).handover_timeout
    except ConfigurationError:
        return now


def _postponed_by(run: RunLog, ended: datetime, now: datetime) -> datetime:
    """Count the wait from now if the end before is in the future, unless it is longer than the step of the clock.

    Then that adds little to it. And so nothing is counted twice: what was moved once is due before that end.
    """
    due_at: datetime = run.due_at
    wait = due_at - ended
    return now + wait if timedelta(0) <= wait < ended - now else due_at


def _backoff(run: RunLog) -> timedelta:
    try:
        return policy_of(run.job).backoff.step(run.failed_attempts)
    except ConfigurationError:
        return timedelta(0)  # it does not start while its policies cannot be read
