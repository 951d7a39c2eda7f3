"""What the page of a job shows: facts, pictures, overrides, and the answer to “why did it not run?”."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from django.conf import settings
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from scheduler.admin.instants import DASH, instant, relative, with_times, zone_of
from scheduler.admin.living import living_runs
from scheduler.admin.policywords import policy_words, words_for_users
from scheduler.admin.preview import Preview, preview_of
from scheduler.admin.recent import recent_runs
from scheduler.admin.runrows import Row, row_of
from scheduler.admin.svg import calendar_map, duration_bars, histogram
from scheduler.engine.explain import Explanation, explain_slot, parse_moment
from scheduler.engine.moments import local
from scheduler.engine.sync import definition
from scheduler.engine.tocome import slots_to_come
from scheduler.exceptions import InvalidOption
from scheduler.models import Group, Job, RunLog, Status
from scheduler.models.fields import Unreadable
from scheduler.registry import registry
from scheduler.schedules import OnActivity

SAMPLE = 2_000
NEXT, LATEST = 10, 10
NOBODY: Mapping[str, int | None] = {}
FAILURES = (Status.FAILED, Status.TIMED_OUT, Status.LOST)
RAN = (Status.SUCCEEDED, *FAILURES)


@dataclass(frozen=True, slots=True)
class Override:
    """A field a person changed: what the code says, and what holds."""

    field: str
    code: str
    now: str


def facts_of(
    job: Job, now: datetime, held: Group | None = None, waiting: Mapping[str, int | None] = NOBODY
) -> dict[str, Any]:
    """Return what the page tells of the job itself, which a paused group may hold, and whose users may be waiting."""
    rules = job.schedule
    return {
        "facts": [*_waiting(waiting), *_facts(job, now)],
        "policies": words_for_users(job, rules) if isinstance(rules, OnActivity) else policy_words(job.policy),
        "upcoming": _upcoming(job, now, held),
        "overrides": overrides_of(job),
    }


def runs_of(job: Job, now: datetime) -> dict[str, Any]:
    """Return what the page tells of the runs of the job, in a constant number of queries."""
    runs = recent_runs([job.pk], SAMPLE)[job.pk]
    return {
        "living": [row_of(run, zone_of(job, settings.TIME_ZONE)) for run in living_runs(job)],
        "last_error": _last_error(runs),
        "latest": _latest(job, runs),
        "sampled": len(runs),
        **_pictures(runs, now),
    }


def _facts(job: Job, now: datetime) -> list[tuple[str, Any, Any]]:
    zone = zone_of(job, settings.TIME_ZONE)
    bad = job.failures + job.timeouts + job.losses
    return [
        (_("Task"), job.task, ""),
        (_("Defined in"), job.source or _("the admin or the API"), ""),
        (_("Group"), job.group or DASH, ""),
        (_("Last run"), instant(job.last_run_at, zone=zone), relative(job.last_run_at, now)),
        (_("Last success"), instant(job.last_success_at, zone=zone), relative(job.last_success_at, now)),
        (_("Succeeded"), job.successes, ""),
        (_("Failed, timed out, lost"), bad, _in_a_row(job)),
        (_("Skipped and missed slots"), f"{job.skips} / {job.misses}", ""),
    ]


def _waiting(waiting: Mapping[str, int | None]) -> list[tuple[str, Any, Any]]:
    """How many users wait for a run of the job; nothing when its runs do not follow what users do."""
    away = _("not known: the store of activities does not answer")
    return [(_("Users who wait"), away if count is None else count, "") for count in waiting.values()]


def _in_a_row(job: Job) -> str:
    return _("({count} in a row)").format(count=job.consecutive_failures) if job.consecutive_failures else ""


def _upcoming(job: Job, now: datetime, held: Group | None) -> Preview:
    if isinstance(job.schedule, Unreadable):
        return Preview(errors=[job.schedule.error])
    slots = [] if isinstance(job.policy, Unreadable) else slots_to_come(job, NEXT + 1, now)
    if held:  # a slot that passes in a pause is not made up for
        slots = [slot for slot in slots if slot > now]
    return preview_of(job.schedule, now, anchor=job.anchor_at, slots=slots[:NEXT])


def overrides_of(job: Job) -> list[Override]:
    """Return what a person changed of a job that the code defines."""
    task = registry.find(job.name)
    wanted = definition(task) if task is not None else {}
    return [
        Override(name, _shown(wanted[name]) if name in wanted else "?", _shown(getattr(job, name, "")))
        for name in job.overridden_fields
    ]


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


def _pictures(runs: Sequence[RunLog], now: datetime) -> dict[str, SafeString | str]:
    timed = [run.duration for run in runs if run.duration is not None and run.status in RAN]
    return {
        "bars": duration_bars(runs) if timed else SafeString(),
        "histogram": histogram(timed),
        "calendar": calendar_map(_days(runs), local(now).date()),
        "calendar_zone": settings.TIME_ZONE,
    }


def _days(runs: Sequence[RunLog]) -> dict[date, tuple[int, int]]:
    days: dict[date, tuple[int, int]] = {}
    for run in runs:
        if run.status not in RAN:
            continue
        day = local(run.scheduled_for).date()
        count, failed = days.get(day, (0, 0))
        days[day] = (count + 1, failed + (run.status in FAILURES))
    return days


def why_of(job: Job, text: str, now: datetime) -> dict[str, Explanation | str | None]:
    """Return the answer to “why did it not run at …?”, or what to write instead."""
    if not text.strip():
        return {"why": "", "answer": None, "why_error": ""}
    try:
        answer = explain_slot(job, parse_moment(text, now), now=now)
        return {"why": text, "answer": answer, "sentence": with_times(answer.sentence), "why_error": ""}
    except InvalidOption as error:
        return {"why": text, "answer": None, "why_error": str(error)}
