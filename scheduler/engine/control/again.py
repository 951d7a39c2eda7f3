"""Again: enqueue tasks that have ended once more, with the arguments they had."""

from collections.abc import Iterator
from datetime import datetime
from itertools import groupby
from operator import attrgetter
from typing import Any

from django.db.models import QuerySet

from scheduler.engine.base import Engine
from scheduler.engine.tasks.enqueue import AT_ONCE, Waiting, put_again
from scheduler.engine.views.enqueued import ended_tasks
from scheduler.models import RunLog
from scheduler.models.carriers import DJANGO_TASKS
from scheduler.models.job import announce


def enqueue_again(runs: QuerySet[RunLog], now: datetime, *, actor: str = "") -> int:
    """Enqueue each of these tasks again, due now, and return how many there were.

    Only tasks that have ended count, each once however many attempts it had. They are new tasks with results of their
    own; their functions are not imported, so no signal tells of the enqueue. Written in batches of a thousand, each in
    a transaction of its own.
    """
    engine = Engine()
    ended = ended_tasks(runs.using(engine.using).order_by().filter(job__source=DJANGO_TASKS))
    count = 0
    for batch in _batches(ended):
        for job_id, some in groupby(sorted(batch, key=attrgetter("job_id")), key=attrgetter("job_id")):
            tasks = [_waiting(run.kwargs, actor) for run in some]
            put_again(engine.using, job_id, tasks, now)
            count += len(tasks)
    if count:
        announce(engine.using)
    return count


def _batches(ended: Any) -> Iterator[list[RunLog]]:
    """Yield the tasks by their numbers. What is written here has higher ones, and is left out."""
    last, most = 0, ended.order_by("-pk").values_list("pk", flat=True).first()
    while most is not None:
        batch = list(ended.filter(pk__gt=last, pk__lte=most).only("job_id", "kwargs").order_by("pk")[:AT_ONCE])
        if not batch:
            return
        yield batch
        last = batch[-1].pk


def _waiting(envelope: Any, actor: str) -> Waiting:
    priority = envelope.get("priority")
    return Waiting(
        kwargs=envelope | {"run_after": None}, priority=priority if isinstance(priority, int) else 0, actor=actor[:150]
    )
