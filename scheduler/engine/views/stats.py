"""Stats: the ledger of jobs in lists and in numbers. Reads only."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from math import ceil
from typing import Any

from django.db.models import Count, Q, QuerySet, Sum

from scheduler.arguments import checked_instant, checked_text, checked_whole, did_you_mean, is_name, optional_instant
from scheduler.engine.base import Engine
from scheduler.engine.control import get_job
from scheduler.exceptions import InvalidOption, UnknownRun
from scheduler.models import FAILURES, Job, RunLog, Status, Trigger
from scheduler.safetext import shown
from scheduler.schedules.instants import instant_text

SAMPLE = 10_000
MOST_RUNS = 1000
TIMED = (Status.SUCCEEDED, Status.FAILED, Status.TIMED_OUT)
"""Runs whose end was reported; for a lost run it would be the moment of detection."""
BAD = Count("pk", filter=Q(status=Status.SUCCEEDED, errors__gt=0))


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStats:
    """How the runs of a job went. Durations are `timedelta`, None when there is nothing to measure.

    `counts` has the rows of each status that occurs, and `with_errors` says how many of the successes reported errors.
    `success_rate` is the other successes / (all successes + failures, timeouts and losses), from 0 to 1. The slots of
    skips and misses are counted one by one, however many stand on one row; `coalesced_slots` are those counted on a run
    of a later slot. Start delays are those of first attempts that the schedule started, catch-ups among them.
    Percentiles are exact (nearest rank) for up to 10,000 runs, else taken from the newest 10,000; `sampled` says how
    many.
    """

    job: str
    since: datetime | None = None
    counts: dict[str, int] = field(default_factory=dict)
    with_errors: int = 0
    skipped_slots: int = 0
    missed_slots: int = 0
    coalesced_slots: int = 0
    success_rate: float | None = None
    duration_p50: timedelta | None = None
    duration_p95: timedelta | None = None
    duration_max: timedelta | None = None
    start_delay_p50: timedelta | None = None
    start_delay_p95: timedelta | None = None
    sampled: int = 0

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready data; durations in seconds, instants in ISO 8601."""
        return {name: _plain(value) for name, value in asdict(self).items()}


def get_runs(
    job: Job | str | None = None,
    *,
    status: str | None = None,
    trigger: str | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
    limit: int = 100,
    before_id: int | None = None,
) -> list[RunLog]:
    """Return rows of the ledger, of one job or of all, the newest first; at most `limit` (1 to 1,000).

    `since <= slot < until` bounds the slots (aware). For the next page, pass the id of the last row as `before_id`.
    Raises UnknownJob, or InvalidOption for an unknown status or trigger, a naive instant or a wrong limit.
    """
    most = checked_whole("limit", limit, least=1, most=MOST_RUNS)
    runs = chosen_runs(
        job if job is None or isinstance(job, Job) else get_job(job),
        status=status,
        trigger=trigger,
        since=since,
        until=until,
    )
    if before_id is not None:
        runs = runs.filter(pk__lt=checked_whole("before_id", before_id))
    return list(runs.select_related("job").order_by("-pk")[:most])


def get_run(run_id: int) -> RunLog:
    """Return a run; raises UnknownRun."""
    runs = RunLog.objects.using(Engine().using).select_related("job")
    run = runs.filter(pk=checked_whole("run_id", run_id)).first()
    if run is None:
        raise UnknownRun(f"There is no run {run_id}.")
    return run


def chosen_runs(
    job: Job | None = None,
    *,
    status: str | None = None,
    trigger: str | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
    actor: str | None = None,
) -> QuerySet[RunLog]:
    """Return the runs that all given filters let through, of one job or of all; raises InvalidOption."""
    wanted = {
        "job": job,
        "status": _checked("status", status, Status.values),
        "trigger": _checked("trigger", trigger, Trigger.values),
        "scheduled_for__gte": optional_instant("since", since),
        "scheduled_for__lt": optional_instant("until", until),
        "actor": None if actor is None else checked_text("actor", actor),
    }
    given = {name: value for name, value in wanted.items() if value is not None}
    return RunLog.objects.using(Engine().using).filter(**given)


def get_run_stats(job: Job | str, since: datetime | None = None) -> RunStats:
    """Return how the runs of a job went, of slots from `since` (aware) on or of all that are kept. Two queries.

    Percentiles are exact for up to 10,000 runs, else taken from the newest 10,000. Raises UnknownJob.
    """
    name = job.name if isinstance(job, Job) else job
    runs = RunLog.objects.using(Engine().using).filter(job__name=name) if is_name(name) else RunLog.objects.none()
    if since is not None:
        runs = runs.filter(scheduled_for__gte=checked_instant("since", since))
    groups = runs.order_by().values("status").annotate(rows=Count("pk"), more=Sum("coalesced"), bad=BAD)
    rows = {row["status"]: (row["rows"], row["more"]) for row in groups}
    with_errors = sum(row["bad"] for row in groups)
    if not rows:
        return RunStats(job=get_job(name).name, since=since)
    return RunStats(job=name, since=since, **_counted(rows, with_errors), **_measured(runs))


def _counted(rows: dict[str, tuple[int, int]], with_errors: int) -> dict[str, Any]:
    counts = {str(status): rows[status][0] for status in Status.values if status in rows}
    failures = sum(counts.get(status, 0) for status in FAILURES)
    successes = counts.get(Status.SUCCEEDED, 0)
    ended = successes + failures
    return {
        "counts": counts,
        "with_errors": with_errors,
        "skipped_slots": sum(rows.get(Status.SKIPPED, (0, 0))),
        "missed_slots": sum(rows.get(Status.MISSED, (0, 0))),
        "coalesced_slots": sum(
            more for status, (_, more) in rows.items() if status not in (Status.SKIPPED, Status.MISSED)
        ),
        "success_rate": (successes - with_errors) / ended if ended else None,
    }


def _measured(runs: QuerySet[RunLog]) -> dict[str, Any]:
    ended = runs.filter(status__in=TIMED, started_at__isnull=False, finished_at__isnull=False)
    columns = ("scheduled_for", "started_at", "finished_at", "trigger", "attempt")
    rows: list[tuple[Any, ...]] = list(ended.order_by("-scheduled_for", "-attempt").values_list(*columns)[:SAMPLE])
    durations = sorted(finished - started for _, started, finished, _, _ in rows)
    by_slot = (row for row in rows if row[3] in Trigger.which("by_plan") and row[4] == 1)
    delays = sorted(started - slot for slot, started, *_ in by_slot)
    return {
        "duration_p50": percentile(durations, 50),
        "duration_p95": percentile(durations, 95),
        "duration_max": durations[-1] if durations else None,
        "start_delay_p50": percentile(delays, 50),
        "start_delay_p95": percentile(delays, 95),
        "sampled": len(rows),
    }


def percentile(ascending: Sequence[timedelta], percent: int) -> timedelta | None:
    """Return the smallest value that at least `percent` of all do not exceed (nearest rank); None of nothing."""
    return ascending[max(0, ceil(len(ascending) * percent / 100) - 1)] if ascending else None


def _checked(name: str, value: str | None, known: Sequence[str]) -> str | None:
    if value is not None and value not in known:
        raise InvalidOption(
            f"{shown(value)} is no {name} of a run.{did_you_mean(value, known)} Known: {', '.join(known)}."
        )
    return value


def _plain(value: Any) -> Any:
    if isinstance(value, timedelta):
        return value.total_seconds()
    return instant_text(value) if isinstance(value, datetime) else value
