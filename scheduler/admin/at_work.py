"""Who runs what: the living runs of all instances, on the page of the instances."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.contrib.admin import AdminSite
from django.http import HttpRequest
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from scheduler.admin import badges
from scheduler.admin.allowed import seen_of
from scheduler.admin.page_context import now_of, once_in
from scheduler.admin.runs.rows import percent_of
from scheduler.admin.times import DASH, relative
from scheduler.engine.views.at_work.instances import (
    MOST_LISTED,
    InstanceAtWork,
    instances_at_work,
    living_runs,
)
from scheduler.models import RunLog


@dataclass(frozen=True, slots=True)
class AtWork:
    """A living run on the page."""

    run: RunLog
    instance: str
    badge: SafeString
    since: SafeString
    percent: int | None
    message: str


def at_work(site: AdminSite, request: HttpRequest) -> dict[str, Any]:
    """Return the living runs that the person may see, instance by instance, those that wait for a worker last."""
    now, instances = now_of(request), instances_of(request)
    runs = seen_of(site, request, living_runs())
    rows = []
    for run in runs[:MOST_LISTED]:
        one = instances.get(run.instance_id) if run.instance_id is not None else None
        begun = run.pk in one.begun if one else run.started_at is None or run.started_at <= now
        name = run.worker or str(one.instance if one else run.instance_id or DASH)
        rows.append((name, not begun, _row(run, name, now, begun=begun)))
    rows.sort(key=lambda row: row[:2])
    return {"at_work": [row for *_, row in rows], "more_at_work": MOST_LISTED if len(runs) > MOST_LISTED else None}


def instances_of(request: HttpRequest) -> dict[UUID, InstanceAtWork]:
    """Return all instances with what they run, asked for once in a request: the list and the numbers agree."""
    return once_in(request, "scheduler_at_work", lambda: instances_at_work(now_of(request)))


def _row(run: RunLog, name: str, now: datetime, *, begun: bool) -> AtWork:
    progress = run.progress if isinstance(run.progress, dict) else {}
    return AtWork(
        run=run,
        instance=name,
        badge=badges.open_badge(run) if begun else badges.badge("calm", "…", _("waiting for a worker")),
        since=relative(run.started_at, now),
        percent=percent_of(run.progress),
        message=str(progress.get("message") or ""),
    )
