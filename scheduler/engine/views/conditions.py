"""Conditions: which jobs are in a state, and which a person should look at. All lists, filters and counts use these."""

from collections.abc import Collection, Mapping
from datetime import datetime

from django.db.models import Case, IntegerField, Q, QuerySet, Value, When

from scheduler.engine.views.expected import UNMET, unmet_expectations
from scheduler.engine.views.failing import failing_jobs
from scheduler.engine.views.overdue import overdue
from scheduler.engine.views.pauses import HELD
from scheduler.models import LONG_AGO, JobState, RunLog

URGENT = ("broken", "invalid", "stuck", "overdue", "failing", *UNMET)
"""What a person should look at, the most urgent first: the codes of these problems."""
CALM = len(URGENT)

_SOUND = Q(orphaned_at=None, problem="")
_GOES_ON = _SOUND & Q(enabled=True, broken_at=None)
BROKEN = _SOUND & Q(enabled=True, broken_at__isnull=False)
INVALID = Q(orphaned_at=None) & ~Q(problem="")
IN_STATE = {
    JobState.RUNNING: Q(active_runs__gt=0),
    JobState.BROKEN: BROKEN,
    JobState.PAUSED: _GOES_ON & (Q(paused_at__isnull=False) | Q(HELD)),
    JobState.DISABLED: _SOUND & Q(enabled=False),
    JobState.ORPHANED: Q(orphaned_at__isnull=False),
    JobState.INVALID: INVALID,
}
"""The conditions on jobs in a state. One that runs is found by what it is besides, too; one that only this process
cannot read is invalid here, and no query finds it."""

AT_REST = _GOES_ON & Q(paused_at=None) & ~Q(HELD)
"""The condition on jobs that are scheduled or finished; what an end is, a query knows in part only."""
PERHAPS_FINISHED = AT_REST & Q(wake_at=None, next_run_at=None)


def stuck_jobs() -> QuerySet[RunLog, int]:
    """Return the keys of the jobs with a stuck run. The bound on `due_at` lets the index of open runs answer."""
    runs = RunLog.objects.living().filter(due_at__gt=LONG_AGO, stuck_at__isnull=False)
    return runs.order_by().values_list("job", flat=True)


def judged_jobs(now: datetime) -> dict[str, list[int]]:
    """Return the keys of the jobs that no condition finds: those that are failing, or not as expected, by code."""
    found: dict[str, list[int]] = {"failing": [job.pk for job in failing_jobs(now)], **{code: [] for code in UNMET}}
    for one in unmet_expectations(now):
        found[one.code].append(one.job.pk)
    return found


def urgent(now: datetime, judged: Mapping[str, Collection[int]] | None = None) -> dict[str, Q]:
    """Return the condition of each reason to look at a job; `judged_jobs`, where they are known."""
    judged = judged_jobs(now) if judged is None else judged
    conditions = {"broken": BROKEN, "invalid": INVALID, "stuck": Q(pk__in=stuck_jobs()), "overdue": overdue(now)}
    return conditions | {code: Q(pk__in=judged[code]) for code in URGENT if code in judged}


def urgency(now: datetime, judged: Mapping[str, Collection[int]] | None = None) -> Case:
    """Return what jobs are ordered by: the place of the first reason in `URGENT`, `CALM` where there is none."""
    found = urgent(now, judged)
    cases = [When(found[code], then=Value(place)) for place, code in enumerate(URGENT)]
    return Case(*cases, default=Value(CALM), output_field=IntegerField())
