"""django-tasks-db: four worker processes on Django's database."""

from collections.abc import Sequence
from datetime import datetime

from tests.benchmarks.peers.base import WORKERS, DjangoPeer


class TasksDatabase(DjangoPeer):
    name = "django-tasks-db"
    note = "looks once a second"
    apps = ("django_tasks_db",)
    commands = (("db_worker", "--no-startup-delay"),) * WORKERS

    def plan(self, due: Sequence[datetime]) -> None:
        from tests.benchmarks.peers.tasks import noting

        for at in due:
            noting.using(run_after=at).enqueue(at.timestamp())
