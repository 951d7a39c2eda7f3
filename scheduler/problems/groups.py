"""Problems of groups: work that is due, and that no process takes."""

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from django.db.models import Count, Min, Q

from scheduler.conf import conf
from scheduler.engine.base import Engine
from scheduler.engine.tasks.queues import PREFIX
from scheduler.engine.views.conditions import AT_REST
from scheduler.engine.views.overdue import overdue_tasks
from scheduler.models import Instance, Job, RunLog, Trigger
from scheduler.problems.base import Problem
from scheduler.problems.jobs import NAMED


def of_groups(running: Sequence[Instance], now: datetime) -> Iterator[Problem]:
    """Yield the groups with due work of which no process that looks for due jobs takes any. At most one query.

    Where one takes all groups there is none, and nothing is asked; an instance that hangs takes nothing.
    """
    taken = [one.takes for one in running if not one.hangs(now)]
    if not taken or any(takes.are_all for takes in taken):
        return
    covered = Q()
    for takes in taken:
        covered |= takes.condition()
    due = Job.objects.filter(~covered, _is_due(now)).order_by()
    found: Counter[str] = Counter()
    for name, jobs in due.values_list("group").annotate(Count("pk")):
        found[name or conf.DEFAULT_GROUP] += jobs
    for group, count in sorted(found.items())[:NAMED]:
        yield Problem("group_not_taken" if group else "ungrouped_not_taken", group, {"jobs": count})
    if len(found) > NAMED:
        yield Problem("group_not_taken", count=len(found) - NAMED, rest=True)


def of_queues(now: datetime) -> Iterator[Problem]:
    """Yield the queues whose tasks have been due for long, while none of them runs. Three queries at most.

    A queue that is worked on may be long. One that is paused waits by design, and so does one that is full.
    """
    runs = RunLog.objects.using(Engine().using)
    due: Any = overdue_tasks(now).using(Engine().using).values_list("job")
    late = {pk: (count, since) for pk, count, since in due.annotate(Count("pk"), Min("due_at"))}
    going = runs.living().filter(trigger=Trigger.TASK).order_by().values("job__group")
    found: dict[str, tuple[int, datetime]] = {}
    for job in Job.objects.filter(AT_REST, pk__in=late).exclude(group__in=going).only("group"):
        count, since = late[job.pk]
        known, first = found.get(job.group, (0, since))
        found[job.group] = (known + count, min(first, since))
    for group, (count, since) in sorted(found.items())[:NAMED]:
        yield Problem("tasks_due", group.removeprefix(PREFIX), {"tasks": count, "time": now - since})
    if len(found) > NAMED:
        yield Problem("tasks_due", count=len(found) - NAMED, rest=True)


def _is_due(now: datetime) -> Q:
    """The condition on jobs that would start now, for a slot, a promised attempt or a task, if a process took them."""
    runs = RunLog.objects
    promised, enqueued = (due.order_by().values("job") for due in (runs.ready(now), runs.ready_tasks(now)))
    return AT_REST & (Q(stale=False, wake_at__lte=now) | Q(pk__in=promised) | Q(pk__in=enqueued))
