"""django-q2: a cluster of four processes on Django's database."""

from collections.abc import Sequence
from datetime import datetime

from tests.benchmarks.peers.base import DjangoPeer


class DjangoQ(DjangoPeer):
    name = "django-q2, ORM broker"
    note = "looks at schedules every 30 s"
    apps = ("django_q",)
    commands = (("qcluster",),)
    lead_seconds = 15.0

    def plan(self, due: Sequence[datetime]) -> None:
        from django_q.models import Schedule

        Schedule.objects.bulk_create(
            Schedule(
                func="tests.benchmarks.peers.notes.noted", args=f"{at.timestamp()!r},", schedule_type="O", next_run=at
            )
            for at in due
        )
