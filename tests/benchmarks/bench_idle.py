"""What the scheduler costs while jobs wait that are due in an hour."""

import threading
import time
from itertools import islice
from typing import Any

from django.db.backends.signals import connection_created

from tests.benchmarks import project
from tests.benchmarks.figures import Figure

VARIANTS = (("100",), ("100000",))
BATCH = 5000
SECONDS = 60.0
SETTLE_SECONDS = 5.0


class Queries:
    """Counts the queries of all threads."""

    def __init__(self) -> None:
        self.count = 0
        connection_created.connect(self._watch, weak=False)

    def _watch(self, connection: Any, **_: Any) -> None:
        connection.execute_wrappers.append(self._execute)

    def _execute(self, execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        self.count += 1
        return execute(sql, params, many, context)


def pause(seconds: float) -> None:
    threading.Event().wait(seconds)


def _make_jobs(count: int) -> None:
    from scheduler.models import Job
    from scheduler.schedules import Every

    due = project.soon(3600)
    jobs = (project.planned(f"hourly {n}", Every(hours=1), due) for n in range(count))
    while batch := list(islice(jobs, BATCH)):
        Job.objects.bulk_create(batch)


def measure(jobs: str = "100") -> list[Figure]:
    project.setup()
    project.create_tables()
    project.register_nothing()
    _make_jobs(int(jobs))
    queries = Queries()
    with project.running():
        pause(SETTLE_SECONDS)
        count, cpu = queries.count, time.process_time()
        pause(SECONDS)
        count, cpu = queries.count - count, time.process_time() - cpu
    waiting = f"{int(jobs):,} hourly jobs"
    return [
        Figure(f"idle queries a minute, {waiting}", count * 60 / SECONDS, "queries", 12.0),
        Figure(f"idle CPU a minute, {waiting}", cpu * 60 / SECONDS, "s", 0.1),
    ]
