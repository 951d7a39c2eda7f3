"""What the page of a run shows."""

from datetime import datetime
from typing import Any

from django.conf import settings
from django.utils.translation import gettext as _

from scheduler.admin import badges
from scheduler.admin.jobs.json_text import json_text
from scheduler.admin.runs.rows import percent_of, totals_words
from scheduler.admin.times import DASH, instant, log_lines, relative, with_times, zone_of
from scheduler.engine.views.datetimes import lasted
from scheduler.engine.views.enqueued import Enqueued, is_enqueued
from scheduler.engine.views.history import told_kwargs
from scheduler.models import Instance, RunLog, Status, Trigger
from scheduler.models.result_ids import id_of
from scheduler.models.stored import Unreadable
from scheduler.policy.executor import handovers

TAIL = 500


def news_of(run: RunLog) -> tuple[Any, ...]:
    """Return what changes while a run lives."""
    return run.status, run.progress, len(run.log), run.finished_at, run.stop_requested_at, run.note, run.stuck_at


def facts_of_run(run: RunLog, now: datetime, *, reads_job: bool) -> dict[str, Any]:
    """Return the context of the page; `reads_job` says whether the keyword arguments of the job may be told, too."""
    lines = run.log.splitlines()
    progress = run.progress if isinstance(run.progress, dict) else None
    return {
        "run": run,
        "job": run.job,
        "badge": badges.badge_of(run),
        "busy": run.status == Status.PENDING or run.is_living,
        "facts": _facts(run, now),
        "percent": percent_of(run.progress),
        "progress": progress,
        "log": log_lines("\n".join(lines[-TAIL:])),
        "earlier_lines": max(0, len(lines) - TAIL),
        "own_kwargs": run.kwargs is not None,
        **_called_with(run, reads_job=reads_job),
        "stopping": _stopping(run),
    }


def _called_with(run: RunLog, *, reads_job: bool) -> dict[str, Any]:
    """Return the arguments of a run; of an enqueued task those of its function, without what they are kept in."""
    if is_enqueued(run.job) and isinstance(run.kwargs, dict):
        return {"is_enqueued": True, **{name: _told(run.kwargs.get(name)) for name in ("args", "kwargs")}}
    return {"kwargs": _told(run.kwargs if run.kwargs is not None else run.job.kwargs if reads_job else None)}


def _told(arguments: Any) -> str:
    """Return arguments as the history of a job tells them, without what looks secret."""
    return json_text(told_kwargs(arguments), indent=2) if arguments else ""


def _stopping(run: RunLog) -> str:
    """Return what to expect of a run that lives on although it was asked to stop, or is over its time."""
    policy = run.job.policy
    if (
        not run.is_living
        or isinstance(policy, Unreadable)
        or not (run.stop_requested_at or run.status != Status.RUNNING)
    ):
        return ""
    if policy.executor == "process":
        return _("Its process is asked to stop, and killed 5 s later.")
    if policy.executor in handovers():
        return _("It is called elsewhere: it ends when its task looks whether it should stop, or returns.")
    return _("A thread cannot be killed: the run ends when its task looks whether it should stop, or returns.")


def _facts(run: RunLog, now: datetime) -> list[tuple[str, Any, Any]]:
    zone = zone_of(run.job, settings.TIME_ZONE)
    by = badges.run_actor(run)
    if by and run.trigger != Trigger.ACTIVITY:
        by = _("by {name}").format(name=by)
    facts = [
        (_("Trigger"), run.get_trigger_display(), by),
        *_facts_of_task(run),
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


def _facts_of_task(run: RunLog) -> list[tuple[str, Any, Any]]:
    if run.trigger != Trigger.TASK:
        return []
    facts = [(_("Result id"), id_of(run.job_id, run.scheduled_for), "")]
    if is_enqueued(run.job):
        one = Enqueued(run.job)
        facts += [(_("Function"), one.function, ""), (_("Queue"), one.queue or DASH, "")]
    return facts


def _took(run: RunLog, now: datetime) -> str:
    if run.is_living and run.started_at:
        return _("{time} so far").format(time=lasted(now - run.started_at, parts=1))
    return lasted(run.duration) or DASH


def _late(run: RunLog) -> str:
    return _("{time} after its slot").format(time=lasted(run.lateness)) if run.lateness is not None else ""


def _instance(run: RunLog) -> str:
    if run.instance_id is None:
        return DASH
    one = Instance.objects.filter(pk=run.instance_id).first()
    return str(one) if one is not None else f"{run.instance_id}"
