"""Enqueue: tasks that wait, for the packages that give people a way to enqueue them."""

from collections.abc import Sequence
from datetime import datetime

from django.db import router

from scheduler.engine.tasks.carriers import Carrier
from scheduler.engine.tasks.enqueue import Waiting, put, put_many
from scheduler.engine.tasks.keys import put_under
from scheduler.engine.tasks.queues import group_of
from scheduler.models import Job, RunLog

__all__ = ["Carrier", "Waiting", "enqueue", "enqueue_all", "enqueue_unique", "group_of"]


def enqueue(carrier: Carrier, task: Waiting, now: datetime) -> RunLog:
    """Write a task that waits, in the transaction of the caller."""
    return put(router.db_for_write(Job), carrier, task, now)


def enqueue_unique(carrier: Carrier, key: str, task: Waiting, now: datetime) -> tuple[RunLog, bool]:
    """Write a task, unless one waits under the key; returns the row that waits, and whether it is new."""
    return put_under(router.db_for_write(Job), carrier, key, task, now, replace=False)


def enqueue_all(carrier: Carrier, tasks: Sequence[Waiting], now: datetime) -> list[RunLog]:
    """Write tasks that wait, many with one statement, in the transaction of the caller."""
    return put_many(router.db_for_write(Job), carrier, tasks, now)
