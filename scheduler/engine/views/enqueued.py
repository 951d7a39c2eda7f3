"""Enqueued tasks by function: how many wait, run and have ended, in a constant number of queries."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Count, Exists, Min, OuterRef, Q, QuerySet, Sum
from django.utils.translation import gettext as _

from scheduler.engine.base import Engine
from scheduler.engine.tasks.queues import PREFIX, has_backend
from scheduler.models import FAILURES, LONG_AGO, OPEN, Job, RunLog, Status, Tally, Trigger
from scheduler.models.carriers import CARRIERS, DJANGO_TASKS
from scheduler.models.tally import WITH_ERRORS

WELL = (Status.SUCCEEDED, WITH_ERRORS)


@dataclass(slots=True)
class Enqueued:
    """The tasks of one function in one queue. Ended ones are counted by attempt, those that retention removed too."""

    job: Job
    waiting: int = 0
    running: int = 0
    succeeded: int = 0
    failed: int = 0
    cancelled: int = 0
    due_since: datetime | None = None
    """Since when the task that has been due for longest waits; None where none is due."""

    @property
    def function(self) -> str:
        """The dotted path of the function, by the name of its job: alias, queue, path."""
        return self.job.name.rpartition(":")[2]

    @property
    def queue(self) -> str:
        """The queue, without what marks its group; empty for tasks of no queue."""
        return str(self.job.group).removeprefix(PREFIX)


def runs_django_tasks() -> bool:
    """Return whether functions of Django Tasks run in these processes once they are enqueued, as TASKS says."""
    return has_backend()


def enqueued_of(jobs: Sequence[Job], now: datetime) -> list[Enqueued]:
    """Return what is to be told of jobs that carry tasks, in their order; two queries."""
    found = {job.pk: Enqueued(job) for job in jobs}
    runs = RunLog.objects.using(Engine().using).filter(due_at__gt=LONG_AGO, trigger=Trigger.TASK, job__in=found)
    waits = Q(status=Status.PENDING)
    counts: Any = (
        runs.order_by()
        .values_list("job")
        .annotate(
            waiting=Count("pk", filter=waits), open=Count("pk"), since=Min("due_at", filter=waits & Q(due_at__lte=now))
        )
    )
    for pk, waiting, is_open, since in counts:
        one = found[pk]
        one.waiting, one.running, one.due_since = waiting, is_open - waiting, since
    for pk, ended in _ended(list(found)).items():
        one = found[pk]
        one.succeeded = sum(ended[status] for status in WELL)
        one.failed = sum(ended[status] for status in FAILURES)
        one.cancelled = ended[Status.CANCELLED]
    return list(found.values())


def ended_tasks(runs: QuerySet[RunLog]) -> QuerySet[RunLog]:
    """Keep of some runs the tasks that have ended and of which no further attempt was promised."""
    later = RunLog.objects.using(runs.db).filter(
        job=OuterRef("job"), scheduled_for=OuterRef("scheduled_for"), attempt__gt=OuterRef("attempt")
    )
    ended = runs.filter(trigger=Trigger.TASK, due_at=None).exclude(status__in=OPEN)
    return ended.filter(~Exists(later))


def why_none_again(runs: QuerySet[RunLog]) -> str:
    """Return why none of some runs is a task that can be enqueued again. At most three queries."""
    if not runs.exists():
        return _("the chosen runs are no longer in the run log.")
    tasks = runs.filter(trigger=Trigger.TASK, job__source=DJANGO_TASKS)
    if not tasks.exists():
        return _("none of the chosen runs is a task of Django. The page of a run of a job has “Run again”.")
    if not tasks.filter(due_at=None).exclude(status__in=OPEN).exists():
        return _("none of the chosen tasks has ended.")
    return _("each of the chosen tasks has a later attempt in the run log; choose that one.")


def enqueued_jobs_of(runs: QuerySet[RunLog]) -> list[Job]:
    """Return the jobs that carry the tasks among some runs, by name."""
    tasks = runs.order_by().filter(trigger=Trigger.TASK).values("job")
    return list(Job.objects.filter(CARRIERS, pk__in=tasks).order_by("name"))


def is_enqueued(job: Job) -> bool:
    """Return whether a job carries the calls of a function of Django Tasks."""
    return job.source == DJANGO_TASKS


def may_be_enqueued_again(run: RunLog) -> bool:
    """Return whether a run is a task of Django that has ended, and the newest attempt of its slot. One query."""
    return is_enqueued(run.job) and ended_tasks(RunLog.objects.filter(pk=run.pk)).exists()


def _ended(ids: list[int]) -> dict[int, dict[str, int]]:
    sums: defaultdict[int, defaultdict[str, int]] = defaultdict(lambda: defaultdict(int))
    rows = Tally.objects.using(Engine().using).filter(job_id__in=ids).order_by()
    for pk, status, count in rows.values_list("job_id", "status").annotate(Sum("count")):
        sums[pk][status] = count
    return dict(sums)
