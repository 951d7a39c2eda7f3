"""Runs as rows of a table, and a page of a job's run log by keyset."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlencode

from django.conf import settings
from django.db.models import Q, QuerySet
from django.utils.safestring import SafeString
from django.utils.translation import ngettext

from scheduler.admin import badges
from scheduler.admin.request_values import instant_of_query, whole_number
from scheduler.admin.times import instant, zone_of
from scheduler.engine.views.datetimes import lasted
from scheduler.models import Job, RunLog, Status, Trigger

PAGE = 50


@dataclass(frozen=True, slots=True)
class Row:
    """One run of a table."""

    run: RunLog
    badge: SafeString
    slot: SafeString
    took: str
    late: str
    totals: str
    trigger: str
    summary: str
    percent: int | None


def row_of(run: RunLog, zone: str) -> Row:
    """Return a run as it is shown in tables."""
    trigger = Trigger(run.trigger).label if run.trigger in Trigger.values else run.trigger
    slot_is_known = run.lateness is not None and run.cause.has_lateness
    who = badges.run_actor(run)
    return Row(
        run=run,
        badge=badges.badge_of(run),
        slot=instant(run.scheduled_for, zone=zone),
        took=lasted(run.duration),
        late=lasted(run.lateness) if slot_is_known else "",
        totals=totals_words(run.totals),
        trigger=f"{trigger} · {who}" if who else str(trigger),
        summary=" ".join(filter(None, (badges.run_summary(run), further_slots(run.coalesced)))),
        percent=percent_of(run.progress),
    )


def further_slots(count: int) -> str:
    """Return “(and 3 more slots)”, empty for none."""
    return ngettext("(and %d more slot)", "(and %d more slots)", count) % count if count else ""


def totals_words(totals: Any) -> str:
    """Return “copied 12, errors 0”."""
    if not isinstance(totals, dict):
        return ""
    return ", ".join(f"{name} {value}" for name, value in totals.items())


def percent_of(progress: Any) -> int | None:
    """Return how far a run is in percent; None when it did not say."""
    if not isinstance(progress, dict):
        return None
    done, total = progress.get("done"), progress.get("total")
    if not isinstance(done, int | float) or not isinstance(total, int | float) or total <= 0:
        return None
    return round(100 * min(max(done / total, 0), 1))


@dataclass(frozen=True, slots=True)
class RunPage:
    """Some runs of a job, the newest first, and the query of the next older ones; with bounds, those between them."""

    rows: list[Row]
    older: str
    failed_only: bool
    since: datetime | None = None
    until: datetime | None = None


def page_of_runs(job: Job, query: Any, among: QuerySet[RunLog]) -> RunPage:
    """Return a page by keyset: `before` and `attempt` name the last run shown. No row is counted or skipped over."""
    runs = among.filter(job=job).order_by("-scheduled_for", "-attempt").defer(None).defer("log", "kwargs")
    failed_only = query.get("status") == "failed"
    if failed_only:
        runs = runs.filter(Q(status__in=(Status.FAILED, Status.TIMED_OUT, Status.LOST)) | Q(errors__gt=0))
    since, until = instant_of_query(query.get("since", "")), instant_of_query(query.get("until", ""))
    if since is not None:
        runs = runs.filter(scheduled_for__gte=since)
    if until is not None:
        runs = runs.filter(scheduled_for__lt=until)
    before = instant_of_query(query.get("before", ""))
    if before is not None:
        attempt = whole_number(query.get("attempt", "")) or 0
        runs = runs.filter(Q(scheduled_for__lt=before) | Q(scheduled_for=before, attempt__lt=min(attempt, 32_767)))
    found = list(runs[: PAGE + 1])
    zone = zone_of(job, settings.TIME_ZONE)
    older = ""
    if len(found) > PAGE:
        last = found[PAGE - 1]
        older = urlencode(
            {"before": last.scheduled_for.astimezone(UTC).isoformat(), "attempt": last.attempt}
            | ({"status": "failed"} if failed_only else {})
            | {name: at.astimezone(UTC).isoformat() for name, at in (("since", since), ("until", until)) if at}
        )
    return RunPage([row_of(run, zone) for run in found[:PAGE]], older, failed_only, since, until)
