"""What the page of a job shows: facts, pictures, overrides, and the answer to “why did it not run?”."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from urllib.parse import urlencode

from django.conf import settings
from django.db.models import QuerySet
from django.utils.translation import gettext as _

from scheduler.admin import badges
from scheduler.admin.jobs.history import Hidden, named_run
from scheduler.admin.jobs.json_text import json_text
from scheduler.admin.jobs.pictures import pictures_of
from scheduler.admin.jobs.policy_words import policy_words, words_for_users
from scheduler.admin.jobs.preview import shown_preview
from scheduler.admin.runs.live_runs import living_runs
from scheduler.admin.runs.recent import recent_runs
from scheduler.admin.runs.rows import Row, row_of
from scheduler.admin.times import DASH, instant, relative, with_times, zone_of
from scheduler.engine.explain.explain_slot import Explanation, explain_text
from scheduler.engine.views.datetimes import local, said, zone_of_schedule
from scheduler.engine.views.history import told_kwargs
from scheduler.engine.views.job_view import JobView
from scheduler.engine.views.preview import preview_of
from scheduler.engine.views.result import session_of
from scheduler.engine.views.upcoming import slots_passed
from scheduler.engine.views.waiting import Waiting
from scheduler.exceptions import ConfigurationError, InvalidOption
from scheduler.models import FAILURES, Job, JobState, RunLog

SAMPLE = 2_000
NEXT, LATEST, PASSED = 10, 10, 5


def facts_of(view: JobView, now: datetime) -> dict[str, Any]:
    """Return what the page tells of the job itself."""
    job, rules = view.job, view.job.schedule
    return {
        "facts": [*_users(view.waiting), *_facts(job, now)],
        "policies": words_for_users(view, rules) if rules.for_users else policy_words(job.policy),
        "what_to_do": what_to_do(view),
        "upcoming": shown_preview(preview_of(view, now, NEXT), now),
        "overrides": [
            (one.field, _shown(one.code) if one.is_known else "?", _shown(one.now)) for one in view.overridden
        ],
    }


def runs_of(
    job: Job, now: datetime, among: QuerySet[RunLog], *, site: str, period: int | None = None
) -> dict[str, Any]:
    """Return what the page tells of the runs of the job, `among` those that the person may see, in a constant number of
    queries."""
    runs = recent_runs([job.pk], SAMPLE, among=among)[job.pk]
    zone, failed = zone_of(job, settings.TIME_ZONE), _last_error(runs)
    return {
        "living": [row_of(run, zone) for run in living_runs(job, among)],
        "last_error": failed,
        "last_error_at": instant(failed.finished_at or failed.scheduled_for, zone=zone) if failed else "",
        "last_error_holds": job.last_status in FAILURES,
        "latest": _latest(job, runs),
        "sampled": len(runs),
        **pictures_of(job, runs, now, among=among, site=site, period=period),
    }


def is_probed(view: JobView) -> bool:
    """Whether a job is broken and a run to probe it is planned."""
    return view.state == JobState.BROKEN and bool(view.job.policy.breaker_probe_after)


def what_to_do(view: JobView) -> str:
    """Return what a person can do about a job that needs one, empty for a job that needs none."""
    if view.state == JobState.PAUSED and view.held_by and view.held_by.group is not None:
        return _("Its group is paused: resume it in the banner of the jobs list.")
    broken = _("Fix the cause, which the last error tells, then reset the job.")
    if is_probed(view):
        broken = _("Fix the cause, which the last error tells. A probe that succeeds or a reset lets the job go on.")
    of_state = {
        JobState.BROKEN: broken,
        JobState.INVALID: _("Change what cannot be read: its schedule or its options."),
        JobState.ORPHANED: _("Bring back the code that defines its task, or delete the job."),
        JobState.PAUSED: _("Resume the job when it may run again."),
        JobState.DISABLED: _("Enable the job to let it run by its schedule."),
    }
    of_attention = {
        "stuck": _("Read the log of the run that goes on, and cancel it if it hangs."),
        "overdue": _("Ask below why it did not run."),
        "failing": _("Read the last error."),
        "not_fresh": _("Compare its latest runs with the time in which a success is expected."),
        "deadline_missed": _("Compare its latest runs with its deadline."),
        "slower": _("Compare the durations of its latest runs with the usual ones."),
    }
    return of_state.get(view.state) or of_attention.get(view.attention, "")


def kwargs_told(job: Job) -> str:
    """Return the keyword arguments of a job as its history tells them, without what looks secret."""
    return json_text(told_kwargs(job.kwargs), indent=2) if job.kwargs else ""


def _facts(job: Job, now: datetime) -> list[tuple[str, Any, Any]]:
    zone = zone_of(job, settings.TIME_ZONE)
    bad = job.failures + job.timeouts + job.losses
    return [
        (_("Task"), job.task, ""),
        (_("Defined in"), job.source or _("the admin or the API"), ""),
        (_("Group"), job.in_group or DASH, "" if job.group else _("default") if job.in_group else ""),
        *([(_("Session"), session, "")] if (session := session_of(job)) else []),
        (_("Last run"), instant(job.last_run_at, zone=zone), relative(job.last_run_at, now)),
        (_("Last success"), instant(job.last_success_at, zone=zone), relative(job.last_success_at, now)),
        (_("Succeeded"), job.successes - job.successes_with_errors, ""),
        *([(_("Succeeded with errors"), job.successes_with_errors, "")] if job.successes_with_errors else []),
        (_("Failed, timed out, lost"), bad, _in_a_row(job)),
        (_("Skipped and missed slots"), f"{job.skips} / {job.misses}", ""),
    ]


def _users(waiting: Waiting) -> list[tuple[str, Any, Any]]:
    """How many users wait for a run of the job; nothing when its runs do not follow what users do."""
    away = _("not known: the store of activities does not answer")
    told = away if waiting.users is None else waiting.users
    return [(_("Users who wait"), told, "")] if waiting.has_users else []


def _in_a_row(job: Job) -> str:
    return _("({count} in a row)").format(count=job.consecutive_failures) if job.consecutive_failures else ""


def _shown(value: Any) -> str:
    if hasattr(value, "describe"):
        return f"{value.describe(_)} ({value})"
    if hasattr(value, "overlap"):
        return "; ".join(f"{subject}: {words}" for subject, words in policy_words(value))
    return str(value)


def _last_error(light: Sequence[RunLog]) -> RunLog | None:
    failed = next((run for run in light if run.status in FAILURES), None)
    return None if failed is None else RunLog.objects.filter(pk=failed.pk).defer("log").first()


def _latest(job: Job, light: Sequence[RunLog]) -> list[Row]:
    ids = [run.pk for run in light[:LATEST]]
    runs = RunLog.objects.filter(pk__in=ids).defer("log", "kwargs").order_by("-scheduled_for", "-attempt")
    zone = zone_of(job, settings.TIME_ZONE)
    return [row_of(run, zone) for run in runs]


def passed_of(job: Job, now: datetime, among: QuerySet[RunLog]) -> dict[str, Any]:
    """Return the last slots that were expected, each with its question and how its last attempt stands, in the zone of
    the job."""
    try:
        slots = slots_passed(job, PASSED, now)
    except ConfigurationError:
        return {"passed": []}
    zone = zone_of_schedule(job.schedule)
    attempts = among.filter(job=job, scheduled_for__in=slots).order_by("attempt") if slots else among.none()
    rows = attempts.values_list("scheduled_for", "status", "errors")
    last = {at: badges.run_badge(status, errors) for at, status, errors in rows}
    return {
        "passed": [
            (
                urlencode({"why": local(at, zone).isoformat(sep=" ")}),
                with_times(said(at, zone), zone),
                last.get(at, ""),
            )
            for at in slots
        ]
    }


def why_of(job: Job, text: str, now: datetime, hidden: Hidden) -> dict[str, Explanation | str | None]:
    """Return the answer to “why did it not run at …?”, or what to write instead. An answer that rests on a run, also on
    the one that broke the job then, tells of it, so it is given to a person who may see that."""
    if not text.strip():
        return {"why": "", "answer": None, "why_error": ""}
    try:
        answer = explain_text(job, text, now=now)
        told = [answer.run.pk] if answer.run else []
        told += [named_run(answer.details["broken_by"])] if "broken_by" in answer.details else []
        if hidden(job, told):
            return {"why": text, "answer": None, "why_error": _("You may not see the run that answers this.")}
        sentence = with_times(answer.sentence, zone_of_schedule(job.schedule))
        return {"why": text, "answer": answer, "sentence": sentence, "why_error": ""}
    except InvalidOption as error:
        return {"why": text, "answer": None, "why_error": str(error)}
