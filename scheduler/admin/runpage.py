"""What the page of a run shows."""

from datetime import datetime
from typing import Any

from django.conf import settings
from django.utils.translation import gettext as _

from scheduler.admin import look
from scheduler.admin.instants import DASH, duration, instant, relative, rough, with_times, zone_of
from scheduler.admin.jsontext import json_text
from scheduler.admin.runrows import percent_of, totals_words
from scheduler.models import Instance, RunLog, Status, Trigger

TAIL = 500


def news_of(run: RunLog) -> tuple[Any, ...]:
    """Return what changes while a run lives."""
    return run.status, run.progress, len(run.log), run.finished_at, run.stop_requested_at, run.note, run.stuck_at


def facts_of_run(run: RunLog, now: datetime) -> dict[str, Any]:
    """Return the context of the page."""
    lines = run.log.splitlines()
    progress = run.progress if isinstance(run.progress, dict) else None
    return {
        "run": run,
        "job": run.job,
        "badge": look.run_badge(run.status),
        "busy": run.status == Status.PENDING or run.is_living,
        "facts": _facts(run, now),
        "percent": percent_of(run.progress),
        "progress": progress,
        "log": "\n".join(lines[-TAIL:]),
        "earlier_lines": max(0, len(lines) - TAIL),
        "kwargs": "" if run.kwargs is None else json_text(run.kwargs, indent=2),
    }


def _facts(run: RunLog, now: datetime) -> list[tuple[str, Any, Any]]:
    zone = zone_of(run.job, settings.TIME_ZONE)
    by = look.run_actor(run)
    if by and run.trigger != Trigger.ACTIVITY:
        by = _("by {name}").format(name=by)
    facts = [
        (_("Trigger"), run.get_trigger_display(), by),
        (_("Slot"), instant(run.scheduled_for, zone=zone), relative(run.scheduled_for, now)),
        (_("Started"), instant(run.started_at, zone=zone), _late(run)),
        (_("Finished"), instant(run.finished_at, zone=zone), ""),
        (_("Duration"), _took(run, now), ""),
        (_("Attempt"), run.attempt, ""),
        (_("Instance"), run.worker or _instance(run), ""),
        (_("Totals"), totals_words(run.totals) or DASH, ""),
    ]
    optional = [
        (_("Reason"), with_times(run.reason), ""),
        (_("Note"), with_times(run.note), ""),
        (_("Further slots counted"), run.coalesced, ""),
        (_("Asked to stop"), run.stop_requested_at and instant(run.stop_requested_at, zone=zone), ""),
        (_("Stuck since"), run.stuck_at and instant(run.stuck_at, zone=zone), ""),
    ]
    return [*facts, *(fact for fact in optional if fact[1])]


def _took(run: RunLog, now: datetime) -> str:
    if run.is_living and run.started_at:
        return _("{time} so far").format(time=rough(now - run.started_at))
    return duration(run.duration) or DASH


def _late(run: RunLog) -> str:
    return _("{time} after its slot").format(time=duration(run.lateness)) if run.lateness is not None else ""


def _instance(run: RunLog) -> str:
    if run.instance_id is None:
        return DASH
    one = Instance.objects.filter(pk=run.instance_id).first()
    return str(one) if one is not None else f"{run.instance_id}"
