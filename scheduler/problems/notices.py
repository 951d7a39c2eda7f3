"""Problems of notifications: what people could not be told."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import chain
from typing import Any

from django.db.models import Count, Min, Q

from scheduler.arguments import is_name
from scheduler.conf import conf
from scheduler.engine.views.datetimes import said
from scheduler.models import LONG_AGO, Job, NoticeChannel, NoticeDelivery
from scheduler.models.notice import PING
from scheduler.problems.base import Problem, cut
from scheduler.problems.jobs import NAMED
from scheduler.registry import registry
from scheduler.safetext import visible

WAITS_LONG = timedelta(seconds=60)
COLLECTIONS = (list, tuple, set, frozenset)
LOST_LATELY = timedelta(days=1)
FAILED_OFTEN = 3
"""A monitor that fails so often in a row is told of; it has been tried for some twenty seconds."""


def of_unknown_jobs() -> Iterator[Problem]:
    """Yield the names of jobs in the settings that neither the database nor the code knows. One query, where there are
    such names. No check says so, since a check asks no database and jobs may be added at any time."""
    narrowed = [jobs for one in conf.NOTIFY if isinstance(jobs := one.get("jobs", ()), COLLECTIONS)]
    named = {"SCHEDULER_SECRET_PINGS": list(conf.SECRET_PINGS), "SCHEDULER_NOTIFY": [*chain(*narrowed)]}
    asked = {name for names in named.values() for name in names if is_name(name)} - set(registry.names())
    known = Job.objects.filter(name__in=asked).values_list("name", flat=True) if asked else ()
    unknown = asked.difference(known)
    for setting, names in named.items():
        found = sorted(unknown & set(names))
        yield from (Problem("unknown_job", visible(name), {"setting": setting}) for name in found[:NAMED])
        if len(found) > NAMED:
            yield Problem("unknown_job", count=len(found) - NAMED, rest=True)


def of_notices(now: datetime) -> Iterator[Problem]:
    """Yield the channels that something waits for, or was given up for lately. Two queries; indexes answer both."""
    waits = Q(due_at__gt=LONG_AGO, due_at__lt=now - WAITS_LONG)
    given_up = Q(notice__at__gt=now - LOST_LATELY - timedelta(days=3), failed_at__gt=now - LOST_LATELY)
    figures = {"since": Min("due_at"), "waiting": Count("pk", filter=waits), "lost": Count("pk", filter=given_up)}
    rows: Any = NoticeDelivery.objects.filter(waits | given_up).order_by().values("channel").annotate(**figures)
    found: list[dict[str, Any]] = list(rows.order_by("channel"))
    channels = {channel.name: channel for channel in NoticeChannel.objects.all()} if found else {}
    for row in found:
        name, channel = row["channel"], channels.get(row["channel"])
        error = cut(channel.last_error) if channel else ""
        if row["waiting"] and not (channel and _is_held_back(channel, now)):
            values = {"waiting": row["waiting"], "since": said(row["since"]), "error": error or "…"}
            yield Problem("notices_waiting", name, values)
        if row["lost"]:
            yield Problem("notices_given_up", name, {"lost": row["lost"], "error": error or "…"})


def _is_held_back(channel: NoticeChannel, now: datetime) -> bool:
    """Whether nothing but the limit of the channel keeps what waits: it goes out together then."""
    return not channel.failures and channel.next_at is not None and channel.next_at > now


def of_pings() -> Iterator[Problem]:
    """Yield the jobs whose monitor could not be told how they stand when it was tried last. Two queries."""
    rows = NoticeChannel.objects.filter(name__startswith=PING, failures__gte=FAILED_OFTEN).order_by("name")
    errors = {row.name.removeprefix(PING): row.last_error for row in rows[:NAMED]}
    names = dict(Job.objects.filter(pk__in=[int(key) for key in errors if key.isdecimal()]).values_list("pk", "name"))
    for key, name in names.items():
        yield Problem("ping_failing", name, {"error": cut(errors[str(key)])})
