"""Prune events: remove what happened to jobs so long ago that the run log of that time is gone, too.

What still explains the present stays: of each job and group the newest event of each kind. A deleted job has none.
"""

from datetime import datetime

from django.db.models import Exists, OuterRef, Q, QuerySet

from scheduler.engine.db.transactions import write_transaction
from scheduler.engine.retention.keep import Retention
from scheduler.models import EventKind, JobEvent

BATCH = 500
"""Rows of one transaction."""


def prune_events(using: str, now: datetime, rules: Retention) -> int:
    """Remove old events; returns how many. One row remembers up to when some are gone."""
    cutoff, count = rules.last_cutoff(now), 0
    victims = None if cutoff is None else _victims(using, cutoff)
    while victims is not None and (rows := dict(victims.values_list("pk", "at")[:BATCH])):
        with write_transaction(using):
            events = JobEvent.objects.using(using)
            count += events.filter(pk__in=list(rows)).delete()[0]
            newest = events.filter(kind=EventKind.PRUNED).values_list("at", flat=True).first()
            at = max(filter(None, (newest, *rows.values())))
            events.update_or_create(kind=EventKind.PRUNED, job=None, name="", defaults={"at": at})
    return count


def _victims(using: str, cutoff: datetime) -> QuerySet[JobEvent]:
    events = JobEvent.objects.using(using)
    later = events.filter(kind=OuterRef("kind"), pk__gt=OuterRef("pk"))
    of_job, of_group = later.filter(job=OuterRef("job")), later.filter(job__isnull=True, name=OuterRef("name"))
    deleted = events.filter(kind=EventKind.DELETED, at__lt=cutoff, job__isnull=False).values("job")
    explains_nothing = (
        Q(job__in=deleted) | (~Q(kind=EventKind.CREATED) & Exists(of_job)) | (Q(job__isnull=True) & Exists(of_group))
    )
    return events.filter(explains_nothing, at__lt=cutoff).exclude(kind=EventKind.PRUNED).order_by("pk")
