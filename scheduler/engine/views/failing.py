"""Failing: jobs whose last final outcome is a failure, as a monitor is to hear of it."""

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from functools import lru_cache, partial
from itertools import groupby, takewhile
from operator import itemgetter
from typing import Any

from django.db.models import Exists, F, OuterRef, Q

from scheduler.engine.db.fast_read import CompiledRows
from scheduler.engine.db.one_look import in_one_look
from scheduler.exceptions import ConfigurationError
from scheduler.models import FAILURES, EventKind, Job, JobEvent, RunLog, Status, Trigger
from scheduler.models.job import LONG_COLUMNS, JobQuerySet

ALMOST_A_DAY = timedelta(hours=23)
"""A day can be as short as that. Kinds with one slot in it at most are daily or rarer: their first failure counts."""
IN_A_ROW = 3
"""So many slots in a row have failed of a job that starts more often."""
LOOKED_AT = 200
"""Of so many candidates, those with the most failures first, the schedules are read."""
RUNS_FOR_USERS = 5
"""So many runs for users in a row have failed of a job that follows what users do."""
USERS = 2
"""Of so many users they are, or of all there are: one user's failure says nothing of the job."""
RUNS_LOOKED_AT = 100
"""So many of the newest runs are read of each such job, which the index of its slots gives."""
USED_JOBS_LOOKED_AT = 10
"""Of so many such jobs, each with a query of its own."""


def candidates() -> JobQuerySet:
    """Return the jobs that go on, whose last run failed and that were not reset since; which of them count as
    failing `failing_jobs` says."""
    goes_on = Job.objects.filter(enabled=True, orphaned_at=None, problem="", broken_at=None, paused_at=None)
    failed = goes_on.filter(Q(last_status__in=FAILURES) | Q(last_errors__gt=0))
    reset = JobEvent.objects.filter(job_id=OuterRef("pk"), kind=EventKind.RESET, at__gte=OuterRef("last_finished_at"))
    return failed.filter(~Exists(reset)).order_by("-consecutive_failures", "name")


def failing_jobs(now: datetime) -> list[Any]:
    """Return the jobs of the first 200 candidates that are failing, each with how often in a row (`failed_in_a_row`).

    In two queries, and one for each job that follows what users do.
    """
    return in_one_look("failing jobs", partial(_failing_jobs, now))


def _failing_jobs(now: datetime) -> list[Any]:
    found: list[Any] = _first_candidates(Job.objects.all().db).read()
    readable = [job for job in found if job.is_readable]
    planned = [job for job in readable if not job.schedule.for_users]
    _count_slots(planned, now)
    used = [job for job in readable if job.schedule.for_users][:USED_JOBS_LOOKED_AT]
    for job in used:
        job.failed_in_a_row = _failed_for_users(job)
    return [job for job in [*planned, *used] if job.failed_in_a_row]


@lru_cache(maxsize=16)
def _first_candidates(using: str) -> CompiledRows[Job]:
    """Every page of the admin and every scrape asks for them, and there are hardly ever any."""
    return CompiledRows(candidates().using(using)[:LOOKED_AT], without=LONG_COLUMNS)


def _count_slots(jobs: Sequence[Any], now: datetime) -> None:
    """Note how many slots of each job have failed in a row, 0 where they are too few to tell."""
    by_hand = _failed_by_hand([job for job in jobs if not job.consecutive_failures and is_rare(job, now)])
    for job in jobs:
        slots = _failed_slots(job, by_hand)
        job.failed_in_a_row = max(slots, job.consecutive_failures) if slots >= _enough(job, now) else 0


def _enough(job: Job, now: datetime) -> int:
    return 1 if is_rare(job, now) else IN_A_ROW


def _failed_slots(job: Job, by_hand: Collection[int]) -> int:
    """Return how many slots in a row have failed, each with all of its attempts; a run by hand is as a slot."""
    slots, rest = divmod(job.consecutive_failures, job.policy.retries + 1)
    is_lost = job.last_status == Status.LOST and (job.consecutive_failures or job.wake_at is not None)
    if job.is_settled and (rest or is_lost or job.pk in by_hand):
        slots += 1  # the last slot came to its end before all attempts were used
    return int(slots)


def _failed_by_hand(jobs: Sequence[Job]) -> set[int]:
    """Return those whose last run was by hand, which no counter tells.

    They start rarely, so that they have few rows.
    """
    if not jobs:
        return set()
    by_hand = RunLog.objects.filter(job__in=[job.pk for job in jobs], trigger=Trigger.MANUAL)
    return set(by_hand.filter(finished_at=F("job__last_finished_at")).values_list("job_id", flat=True))


def _failed_for_users(job: Job) -> int:
    """Return how many of the newest runs for users have failed in a row, if they are enough to be the job's failure.

    A success by hand ends the row of failures, too; a failure by hand is none of a user.
    """
    last_attempts = _newest_last_attempts(job)
    since_success = takewhile(lambda run: run["status"] != Status.SUCCEEDED or run["errors"], last_attempts)
    users = [
        run["actor"] for run in since_success if _is_of_user(run) and run["status"] in (*FAILURES, Status.SUCCEEDED)
    ]
    everyone = {run["actor"] for run in last_attempts if _is_of_user(run)}
    is_of_many = len(set(users)) >= min(USERS, len(everyone))
    return len(users) if len(users) >= RUNS_FOR_USERS and is_of_many else 0


def _newest_last_attempts(job: Job) -> list[dict[str, Any]]:
    rows = RunLog.objects.filter(job=job, trigger__in=(Trigger.ACTIVITY, Trigger.MANUAL))
    columns = ("scheduled_for", "status", "errors", "trigger", "actor")
    newest = rows.order_by("-scheduled_for", "-attempt").values(*columns)[:RUNS_LOOKED_AT]
    return [next(attempts) for _, attempts in groupby(newest, key=itemgetter("scheduled_for"))]


def _is_of_user(run: dict[str, Any]) -> bool:
    return bool(run["trigger"] == Trigger.ACTIVITY)


def is_rare(job: Job, now: datetime) -> bool:
    """Return whether a job has at most one slot a day; one that follows other jobs, or runs once, counts as such."""
    try:
        return bool(job.schedule.count_between(now - ALMOST_A_DAY, now, 2) <= 1)
    except (ConfigurationError, ValueError, OverflowError):
        return False
