"""Dependents: what jobs that wait for others must respect, by the ends of runs as the ledger has them."""

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from scheduler.models import Status, Trigger
from tests.simulation.rows import JobRow, RunRow, Violation

if TYPE_CHECKING:
    from tests.simulation.watcher import Change, Watcher

BACKOFF = (30, 60, 300, 900, 3600)
NOT_BEGUN = (Status.SKIPPED, Status.MISSED, Status.CANCELLED)


def dependents_follow_their_parents(watcher: "Watcher", change: "Change") -> None:
    """A dependent job runs for the end of its last parent, after a success, or a final end, of each (I16)."""
    by_name = {job.name: pk for pk, job in change.jobs.items()}
    for run in _starts(watcher, change):
        spec = watcher.spec(change.jobs[run.job_id])
        earlier = [one.scheduled_for for one in watcher.runs.values() if _is_earlier(one, run)]
        since = max(earlier, default=None)
        ends = [_last_end(watcher, by_name.get(name), spec.on, since, run.scheduled_for) for name in spec.parents]
        if None in ends or max(end for end in ends if end) != run.scheduled_for:
            raise Violation(f"I16: run {run.pk} of slot {run.scheduled_for} follows the ends {ends}")


def dependents_wait_out_their_backoff(watcher: "Watcher", change: "Change") -> None:
    """A dependent job that failed does not follow its parents before its backoff is over (I11)."""
    for run in _starts(watcher, change):
        failures = change.jobs_before[run.job_id].consecutive_failures
        ends = [
            one.finished_at for one in watcher.runs.values() if one.job_id == run.job_id and one.counts and one.failed
        ]
        failed_at = max((end for end in ends if end), default=None)
        if not failures or failed_at is None or run.started_at is None:
            continue
        wait = _step(watcher.spec(change.jobs[run.job_id]).options.get("backoff", BACKOFF), failures)
        if run.started_at < failed_at + wait:
            raise Violation(f"I11: run {run.pk} starts at {run.started_at}, {failures} failures until {failed_at}")


def follows_a_parent(watcher: "Watcher", change: "Change", job: JobRow) -> bool:
    """Whether the next slot of a job is an end of one of its parents that counts for it."""
    spec, slot = watcher.spec(job), job.next_run_at
    parents = [pk for pk, one in change.jobs.items() if one.name in spec.parents]
    return slot is not None and any(_last_end(watcher, pk, spec.on, None, slot) == slot for pk in parents)


def _starts(watcher: "Watcher", change: "Change") -> list[RunRow]:
    if watcher.clock_went_back:
        return []
    return [run for run in change.begun if run.trigger == Trigger.DEPENDENCY and run.attempt == 1]


def _is_earlier(one: RunRow, run: RunRow) -> bool:
    return one.job_id == run.job_id and one.trigger == Trigger.DEPENDENCY and one.pk < run.pk


def _last_end(watcher: "Watcher", job: int | None, on: str, since: datetime | None, until: datetime) -> datetime | None:
    """Return the last end of a job in an interval that counts for those who wait for it."""
    runs = [run for run in watcher.runs.values() if run.job_id == job]
    if on == "success":
        runs = [run for run in runs if run.status == Status.SUCCEEDED]
    else:
        followed = {(run.scheduled_for, run.attempt - 1) for run in runs if run.trigger != Trigger.BACKFILL}
        runs = [run for run in runs if _is_end(run) and (run.scheduled_for, run.attempt) not in followed]
    ends = (run.finished_at for run in runs if run.finished_at and run.finished_at <= until)
    return max((end for end in ends if since is None or end > since), default=None)


def _is_end(run: RunRow) -> bool:
    """Whether a run ended that was begun, or that was a further attempt of one that was; a postponed one goes on."""
    if run.is_open or run.status == Status.POSTPONED:
        return False
    return run.attempt > 1 or not (run.status in NOT_BEGUN and run.started_at is None)


def _step(backoff: object, failures: int) -> timedelta:
    steps = [backoff] if isinstance(backoff, int) else list(backoff or [0])  # type: ignore[call-overload]
    return timedelta(seconds=steps[min(failures, len(steps)) - 1])
