"""Who runs what: the living runs of all instances, on the page of the instances."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.contrib.admin import AdminSite
from django.http import HttpRequest
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from scheduler.admin import badges
from scheduler.admin.allowed import seen_of
from scheduler.admin.page_context import now_of
from scheduler.admin.runs.rows import percent_of
from scheduler.admin.times import DASH, relative
from scheduler.engine.views.at_work.instances import MOST_LISTED, has_begun, instances_of, living_runs
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
    now = now_of(request)
    runs = seen_of(site, request, living_runs())
    instances = instances_of(runs)
    rows = []
    for run in runs[:MOST_LISTED]:
        begun = has_begun(run, instances, now)
        one = instances.get(run.instance_id) if run.instance_id is not None else None
        name = run.worker or str(one or run.instance_id or DASH)
        rows.append((name, not begun, _row(run, name, now, begun=begun)))
    rows.sort(key=lambda row: row[:2])
    return {"at_work": [row for *_, row in rows], "more_at_work": MOST_LISTED if len(runs) > MOST_LISTED else None}


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
