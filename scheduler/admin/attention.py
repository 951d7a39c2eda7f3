"""What needs attention: broken, stuck, overdue and failing jobs, in this order, before the rest."""

from datetime import datetime
from typing import Any

from django.db.models import Case, IntegerField, Q, QuerySet, Value, When

from scheduler.engine.overdue import overdue
from scheduler.models import UNPLANNED, Job, RunLog, Status

BROKEN, STUCK, OVERDUE, FAILING, CALM = range(5)
FAILURES = (Status.FAILED, Status.TIMED_OUT, Status.LOST)


def stuck_jobs() -> QuerySet[Any, Any]:
    """The jobs with a stuck run. The bound on `due_at` lets the index of open runs answer."""
    return RunLog.objects.living().filter(due_at__gt=UNPLANNED, stuck_at__isnull=False).order_by().values("job")


def with_attention(jobs: QuerySet[Job], now: datetime) -> QuerySet[Any, Any]:
    """Annotate jobs with `attention`: 0 is the most urgent."""
    stopped = Q(enabled=False) | Q(orphaned_at__isnull=False)
    return jobs.annotate(
        attention=Case(
            When(Q(broken_at__isnull=False) & ~stopped, then=Value(BROKEN)),
            When(~Q(problem="") & Q(orphaned_at__isnull=True), then=Value(BROKEN)),
            When(pk__in=stuck_jobs(), then=Value(STUCK)),
            When(overdue(now), then=Value(OVERDUE)),
            When(Q(last_status__in=FAILURES) & ~stopped, then=Value(FAILING)),
            default=Value(CALM),
            output_field=IntegerField(),
        )
    )
