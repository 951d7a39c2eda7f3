"""APScheduler 3: a thread, a pool of four, jobs in memory, in SQLAlchemy, or in Django's database."""

import os
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from tests.benchmarks.peers.base import WORKERS, DjangoPeer, Peer
from tests.benchmarks.peers.notes import noted


def _started(store: Any) -> Any:
    from apscheduler.executors.pool import ThreadPoolExecutor
    from apscheduler.schedulers.background import BackgroundScheduler

    scheduler = BackgroundScheduler(
        jobstores={"default": store},
        executors={"default": ThreadPoolExecutor(WORKERS)},
        job_defaults={"misfire_grace_time": None},
        timezone="UTC",
    )
    scheduler.start()
    return scheduler


class InMemory(Peer):
    name = "APScheduler, memory"
    lead_seconds = 4.0
    bursts = 20
    note = "nothing is stored"

    def start(self) -> None:
        from apscheduler.jobstores.memory import MemoryJobStore

        self._scheduler = _started(MemoryJobStore())

    def plan(self, due: Sequence[datetime]) -> None:
        for at in due:
            self._scheduler.add_job(noted, "date", run_date=at, args=[at.timestamp()])

    def stop(self) -> None:
        self._scheduler.shutdown(wait=False)


class InSQLAlchemy(InMemory):
    name = "APScheduler, SQLAlchemy"
    note = "no run log, one process only"
    lead_seconds = 30.0
    bursts = 1

    def start(self) -> None:
        from apscheduler.jobstores.sqlalchemy import SQLAlchemyJobStore

        self._scheduler = _started(SQLAlchemyJobStore(f"sqlite:///{os.environ['BENCH_FOLDER']}/apscheduler.sqlite3"))


class InDjango(InMemory, DjangoPeer):
    name = "django-apscheduler"
    note = "one process only"
    lead_seconds = 40.0
    bursts = 1
    apps = ("django_apscheduler",)

    def start(self) -> None:
        DjangoPeer.start(self)
        from django_apscheduler.jobstores import DjangoJobStore

        self._scheduler = _started(DjangoJobStore())

    def plan(self, due: Sequence[datetime]) -> None:
        for number, at in enumerate(due):
            self._scheduler.add_job(
                noted, "date", run_date=at, args=[at.timestamp()], id=f"{at.timestamp()}-{number}", max_instances=1
            )
