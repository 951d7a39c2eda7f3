"""Keys: under a key one task of a carrier waits at a time. A further one moves it, or leaves it as it is."""

from contextlib import AbstractContextManager, nullcontext
from datetime import datetime
from typing import Any

from django.db import IntegrityError, connections
from django.db.models import OuterRef, QuerySet, Subquery

from scheduler.engine.db.transactions import write_transaction
from scheduler.engine.tasks.carriers import Carrier, job_of
from scheduler.engine.tasks.enqueue import DUPLICATE, MOST_TRIES, Waiting, announce_tasks, put
from scheduler.exceptions import SchedulerError
from scheduler.models import RunKey, RunLog, Status


def put_under(
    using: str, carrier: Carrier, key: str, task: Waiting, now: datetime, *, replace: bool
) -> tuple[RunLog, bool]:
    """Write a task, unless one waits under its key: with `replace` that is moved. Returns the row that waits, and
    whether it is new.

    At most three statements. Of several processes at once one writes: the others find that the key is not as they read
    it, take back what they wrote, and look again. Each look is a transaction of its own: PostgreSQL keeps the lock of a
    row that is not as it was read, and two processes would wait for each other's.
    """
    for _ in range(MOST_TRIES):
        with _writing(using):
            known = _read(using, job_of(using, carrier), carrier.name, key)
            if known is None or known.waits is None:
                run = put(using, carrier, task, now)
                if _point_to(using, run, key, known):
                    return run, True
                RunLog.objects.using(using).filter(pk=run.pk).delete()
            elif not replace or _move(using, known, task, now):
                found = RunLog.objects.using(using).filter(pk=known.waits).first()
                if found is not None:
                    return found, False
    raise SchedulerError(f"Other processes keep changing what waits under the key {key!r} of {carrier.name!r}.")


def waiting_under(using: str, job_id: int, key: str) -> QuerySet[RunLog]:
    """Return the task that waits under a key, its first attempt or a further one."""
    slot = RunKey.objects.using(using).filter(job_id=job_id, key=key).values("scheduled_for")
    rows: QuerySet[RunLog] = _waiting(using).filter(job=job_id, scheduled_for=Subquery(slot[:1]))
    return rows


def _waiting(using: str) -> Any:
    return RunLog.objects.using(using).waiting().filter(priority__isnull=False)


def _writing(using: str) -> AbstractContextManager[Any]:
    return nullcontext() if connections[using].in_atomic_block else write_transaction(using)


def _read(using: str, job_id: int, name: str, key: str) -> Any:
    """Return what is known of a key, with the id of the task that `waits` under it; None where nothing is known.

    Another job may have the id of one that this process knows, and that was flushed.
    """
    of_job = _waiting(using).filter(job=OuterRef("job_id"), job__name=name)
    waits = of_job.filter(scheduled_for=OuterRef("scheduled_for")).order_by()
    keys = RunKey.objects.using(using).filter(job_id=job_id, key=key)
    return keys.annotate(waits=Subquery(waits.values("pk")[:1])).first()


def _move(using: str, known: Any, task: Waiting, now: datetime) -> bool:
    """Change the task that waits under a key; False when it has begun, or was cancelled, since that was read."""
    due_at = max(filter(None, (task.due_at, now, known.scheduled_for)))
    columns = {"due_at": due_at, "kwargs": task.kwargs, "priority": task.priority, "actor": task.actor}
    # By its key and what no index has: MariaDB would lock it by another index, and processes block each other.
    as_read = RunLog.objects.using(using).filter(pk=known.waits, status=Status.PENDING)
    is_moved = bool(as_read.update(**columns))
    announce_tasks(using)
    return is_moved


def _point_to(using: str, run: RunLog, key: str, known: Any) -> bool:
    """Have a key name a new task; False when another process was faster."""
    if known is None or known.job_id != run.job_id:
        return _insert(using, RunKey(job_id=run.job_id, key=key, scheduled_for=run.scheduled_for))
    as_read = RunKey.objects.using(using).filter(pk=known.pk, scheduled_for=known.scheduled_for)
    return bool(as_read.update(scheduled_for=run.scheduled_for))


def _insert(using: str, row: RunKey) -> bool:
    """Insert a key unless it is there; a conflict must not spoil a transaction of the caller."""
    connection = connections[using]
    quote, is_mysql = connection.ops.quote_name, connection.vendor == "mysql"
    fields: list[Any] = [field for field in RunKey._meta.concrete_fields if not field.primary_key]
    names = ", ".join(quote(field.column) for field in fields)
    statement = f"INSERT INTO {quote(RunKey._meta.db_table)} ({names}) VALUES ({', '.join(['%s'] * len(fields))})"
    values = [field.get_db_prep_save(getattr(row, field.attname), connection) for field in fields]
    with connection.cursor() as cursor:
        try:
            cursor.execute(statement if is_mysql else f"{statement} ON CONFLICT DO NOTHING", values)
        except IntegrityError as error:
            if is_mysql and error.args[:1] == (DUPLICATE,):
                return False
            raise
        return bool(cursor.rowcount)
