"""Lately: what went wrong in the newest stretch of the ledger, by conditions that lists, filters and numbers share.

No index knows the outcome of a run, so that a bounded stretch of the newest rows is looked through, by their keys.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Count, Q, QuerySet, Subquery, TextField, Value
from django.db.models.functions import Cast
from django.db.models.lookups import GreaterThan

from scheduler.engine.db.seconds import SecondsOf
from scheduler.engine.views.conditions import AT_REST
from scheduler.engine.views.overdue import OVERDUE_AFTER
from scheduler.models import FAILURES, Job, RunLog, Status, Trigger

STRETCH = 100_000
"""Rows looked at in one go: some ten milliseconds, whatever the filter and the database."""
DAY, HOUR = timedelta(days=1), timedelta(hours=1)
FAILED = Q(status__in=FAILURES) | Q(errors__gt=0)
MISSED = Q(status=Status.MISSED)
BUSY = Q(active_runs__gt=0, wake_at__isnull=True)
"""Jobs whose run decides by its end on what follows."""
TIMED = (Trigger.SCHEDULE, Trigger.ACTIVITY)
SECONDS_LATE = SecondsOf("started_at") - SecondsOf("scheduled_for")
"""How long after its slot a run started."""


def late() -> Q:
    """Return the condition on runs that started more than a minute after their slot: those that caught up, and first
    attempts by plan or for a user, but for jobs with a jitter, which are to start later."""
    jittered = Job.objects.order_by().annotate(rules=Cast("schedule", TextField())).filter(rules__contains='"jitter"')
    by_plan = Q(trigger__in=TIMED, attempt=1) & ~Q(job_id__in=jittered.values("pk"))
    return (by_plan | Q(trigger=Trigger.CATCH_UP)) & Q(GreaterThan(SECONDS_LATE, OVERDUE_AFTER.total_seconds()))


def due_soon(now: datetime) -> Q:
    """Return the condition on jobs that start within an hour, as far as is known: by their plan, or by their next slot
    where a run goes on that may have ended by then."""
    planned = Q(next_run_at__isnull=False, wake_at__lte=now + HOUR)
    return AT_REST & Q(stale=False) & (planned | BUSY & Q(next_run_at__lte=now + HOUR))


def jobs_lately(runs: QuerySet[RunLog], last: int, now: datetime) -> dict[str, Q]:
    """Return the conditions on jobs of which a slot was missed, and a run was late, in the last 24 hours, as far as the
    newest stretch of some runs tells; `last` is the key of the newest run."""
    lately = runs.order_by().filter(pk__gt=last - STRETCH, scheduled_for__gte=now - DAY)
    found = {"missed": MISSED, "late": late()}
    return {name: Q(pk__in=lately.filter(condition).values("job_id")) for name, condition in found.items()}


@dataclass(frozen=True, slots=True)
class Lately:
    """Jobs that are due, runs that live, and runs of the last 24 hours by what went wrong. Not `whole`: the stretch
    ended before the day did."""

    due: int = 0
    running: int = 0
    failed: int = 0
    missed: int = 0
    late: int = 0
    whole: bool = True


def count_lately(jobs: QuerySet[Job], runs: Any, last: int, now: datetime) -> Lately:
    """Count some jobs and runs, `last` being the key of the newest run, in one query. Indexes answer what is due and
    what lives, the primary key bounds the rest."""
    since = now - DAY
    found = runs.order_by().filter(pk__gt=last - STRETCH, scheduled_for__gte=since)
    counted = {"a": FAILED, "b": MISSED, "c": late()}
    lately = found.values(tag=Value("lately")).annotate(
        **{name: Count("pk", filter=condition) for name, condition in counted.items()}
    )
    due = _one_count(jobs.order_by().filter(due_soon(now)), "due")
    running = _one_count(runs.order_by().living(), "running")
    behind = Subquery(RunLog.objects.filter(pk__lte=last - STRETCH).order_by("-pk").values("pk")[:1])
    edge = _one_count(RunLog.objects.order_by().filter(pk=behind, scheduled_for__gte=since), "edge")
    columns = ("tag", "a", "b", "c")
    others = (rows.values_list(*columns) for rows in (due, running, edge))
    rows: Any = lately.values_list(*columns).union(*others, all=True)
    counts = {tag: numbers for tag, *numbers in rows.order_by()}
    failed, missed, started_late = counts.get("lately", (0, 0, 0))
    due_now, living, further = (counts.get(tag, (0,))[0] for tag in ("due", "running", "edge"))
    return Lately(due_now, living, failed, missed, started_late, whole=not further)


def _one_count(rows: QuerySet[Any], tag: str) -> QuerySet[Any, Any]:
    zero = Value(0)
    found: QuerySet[Any, Any] = rows.values(tag=Value(tag)).annotate(a=Count("pk"), b=zero, c=zero)
    return found
