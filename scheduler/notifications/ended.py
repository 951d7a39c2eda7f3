"""Ended: how outages that people were told of came to their end, or that they go on unseen."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from scheduler.models import EventKind, Job, JobEvent, Notice, RunLog, Told
from scheduler.notifications.found import FAILING, STUCK


@dataclass(frozen=True, slots=True)
class Known:
    """What tells the ends of several outages: who reset which jobs when, and how runs that were stuck ended."""

    resets: Mapping[int, tuple[datetime, str]]
    statuses: Mapping[int, str]

    @classmethod
    def of(cls, over: Sequence[Notice]) -> "Known":
        """Read it for outages that are no more to be seen. Two queries at most."""
        failing = [notice for notice in over if _topic(notice) == FAILING]
        runs = [run for notice in over if _topic(notice) == STUCK and (run := _run(notice))]
        resets: dict[int, tuple[datetime, str]] = {}
        if failing:
            jobs, since = [notice.job_id for notice in failing], min(map(_instant, failing))
            events = JobEvent.objects.filter(kind=EventKind.RESET, job__in=jobs, at__gte=since).order_by("id")
            resets = {job: (at, actor) for job, at, actor in events.values_list("job_id", "at", "actor")}
        rows = RunLog.objects.filter(pk__in=runs).values_list("pk", "status") if runs else ()
        return cls(resets, dict(rows))


def how_it_ended(notice: Notice, job: Job | None, known: Known) -> tuple[Told | None, dict[str, Any]] | None:
    """Return what to tell of the end of an outage, with details; no kind where nothing is; None while it goes on.

    That a job does not fail any more has to be seen: a pause, say, is no recovery. Of one that people switched off
    there is nothing more to tell.
    """
    if job is None:
        return None, {}
    if _topic(notice) == STUCK:
        return _end_of_stuck(known.statuses.get(_run(notice)))
    since = _instant(notice)
    if job.last_success_at and job.last_success_at > since:
        again = notice.kind != Told.BROKEN
        return (None if _topic(notice) == Told.SLOWER else Told.SUCCEEDED_AGAIN if again else Told.RECOVERED), {}
    return (None, {}) if _topic(notice) != FAILING else _end_of_failing(job, since, known)


def _end_of_stuck(status: str | None) -> tuple[Told | None, dict[str, Any]]:
    return (None, {}) if status is None else (Told.RECOVERED, {"status": status})


def _end_of_failing(job: Job, since: datetime, known: Known) -> tuple[Told | None, dict[str, Any]] | None:
    at, actor = known.resets.get(job.pk, (None, ""))
    if at is not None and at >= since:
        return Told.RECOVERED, {"reset_by": actor}
    return None if job.enabled else (None, {})


def _topic(notice: Notice) -> str:
    return (notice.open_for or "").partition(":")[0]


def _run(notice: Notice) -> int:
    run = notice.data.get("run")
    return run if isinstance(run, int) else 0


def _instant(notice: Notice) -> datetime:
    told_at: datetime = notice.at
    try:
        since = datetime.fromisoformat(notice.data["after"])
    except (KeyError, TypeError, ValueError):
        return told_at
    return since if since.tzinfo else told_at
