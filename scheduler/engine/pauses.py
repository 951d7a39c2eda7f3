"""Pauses: how those of a job, of a group and of everything begin and end. `views.pauses` says what they hold."""

from collections.abc import Callable
from datetime import datetime
from typing import Any

from django.db.models import Q, QuerySet

from scheduler.arguments import checked_text, optional_instant
from scheduler.engine.base import Engine
from scheduler.engine.db.transactions import write_transaction
from scheduler.engine.events import SCHEDULER, event, write_events
from scheduler.models import EVERYTHING, EventKind, Group, Job, in_groups
from scheduler.models.job_columns import UNABLE, to_replan
from scheduler.models.primary import lock_in_order, locked
from scheduler.signals import after_commit, group_resumed

SET_ASIDE = ~Q(problem="") & ~Q(problem__startswith=UNABLE) & Q(orphaned_at__isnull=True)
"""Which jobs stay unplanned until they are changed, whatever pause ends; an orphan goes on when its task returns."""
NOT_PAUSED: dict[str, Any] = {"paused_at": None, "paused_until": None, "paused_by": "", "pause_reason": ""}
"""The columns of a job or a group without a pause."""


def begun_pause(
    now: datetime, until: datetime | None, reason: str, actor: str
) -> Callable[[Job | Group], dict[str, Any]]:
    """Return what makes the columns of a pause. One that goes on keeps its beginning; none ends before it was asked
    for. Raises InvalidOption."""
    end = optional_instant("until", until)
    columns = {
        "paused_until": None if end is None else max(end, now),
        "pause_reason": checked_text("reason", reason)[:500],
        "paused_by": checked_text("actor", actor)[:150],
    }

    def pause(stopped: Job | Group) -> dict[str, Any]:
        is_over = stopped.paused_until is not None and stopped.paused_until <= now
        return {"paused_at": now if is_over else stopped.paused_at or now, **columns}

    return pause


def end_pause(job: Job) -> None:
    """Clear a pause; the caller plans the job afresh."""
    for column, value in NOT_PAUSED.items():
        setattr(job, column, value)


def end_expired_pauses(engine: Engine, now: datetime) -> None:
    """End the pauses of groups whose time is over."""
    _end_pauses(engine, Group.objects.using(engine.using).paused().filter(paused_until__lte=now), now, SCHEDULER)


def resume_group_row(engine: Engine, name: str, now: datetime, actor: str) -> bool:
    """End the pause of a group and plan its jobs from now; False when it was not paused."""
    return _end_pauses(engine, Group.objects.using(engine.using).paused().filter(name=name), now, actor) > 0


def _end_pauses(engine: Engine, groups: QuerySet[Group], now: datetime, actor: str) -> int:
    """End pauses at `now`, or when their time was over; returns how many.

    All in one transaction: who sees that a group goes on must not see its jobs as if it had never been paused.
    """
    count = 0
    with write_transaction(engine.using):
        for group in locked(groups.order_by("name")):
            ended_at = min(now, group.paused_until or now)
            groups.filter(name=group.name).update(**NOT_PAUSED)
            write_events(engine.using, [event(group, EventKind.RESUMED, ended_at, actor=actor)])
            _plan_from(engine, group, ended_at)
            after_commit(group_resumed, Group, using=engine.using, group=group)
            count += 1
    return count


def _plan_from(engine: Engine, group: Group, ended_at: datetime) -> None:
    """Have the jobs of a group planned from the end of its pause on, where that is later than what they wait for."""
    waiting = Q(next_run_at__lt=ended_at) | Q(replan_from__lt=ended_at)
    waiting |= Q(paused_until__lt=ended_at, wake_at__isnull=False, stale=False) & ~SET_ASIDE
    jobs = Job.objects.using(engine.using).filter(waiting)
    if group.name != EVERYTHING:
        jobs = jobs.filter(in_groups([group.name]))
    lock_in_order(jobs)
    jobs.update(**to_replan(ended_at))
