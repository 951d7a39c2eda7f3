"""Unable: jobs and promised attempts that this process cannot read, or that the database refuses to take from it.

Another release or another host may be able to: such an inability is no fact about the job. The process puts the row
aside for itself, leaves it due for others, looks again after a backoff, and lists it in its own row. Only what every
live instance lists is a problem of the job.
"""

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from django.db.models import F, QuerySet

from scheduler.engine.db.transactions import rewrite, write_transaction
from scheduler.engine.events import SCHEDULER
from scheduler.models import Instance, Job, RunLog
from scheduler.models.job_columns import UNABLE
from scheduler.safetext import counted, visible
from scheduler.schedules.duration import length_words

if TYPE_CHECKING:
    from scheduler.engine.base import Engine
    from scheduler.engine.decide import Decision

logger = logging.getLogger("scheduler")

STEPS = (timedelta(seconds=5), timedelta(seconds=15), timedelta(seconds=60))
"""How long a row is put aside: the first time, the second, and every further time."""
SAY_EVERY = timedelta(minutes=5)
LONGEST_REASON = 300
RUN = "run "
"""How the id of a promised attempt begins in the list of an instance; that of a job is a number."""
MOST_LINES = 5
"""So many jobs are named in the log at once; the others are counted."""


@dataclass(slots=True)
class PutAside:
    """One row that waits for its next try."""

    name: str
    task: str
    why: str
    tried_at: datetime
    group: str = ""
    version: int = 0
    """The version of the job when it was tried: another one is a reason to look at once."""
    tries: int = 1
    said_at: datetime | None = None

    @property
    def wait(self) -> timedelta:
        """For how long it is put aside."""
        return STEPS[min(self.tries, len(STEPS)) - 1]

    @property
    def until(self) -> datetime:
        """When it is tried again."""
        return self.tried_at + self.wait

    def waits(self, now: datetime) -> bool:
        """Whether its next try is to come. After the clock was set back it does not wait longer than it would have."""
        return now < self.until <= now + STEPS[-1]

    def is_old(self, now: datetime) -> bool:
        """Whether it has not been due since: others ran it, or people stopped it."""
        return now > self.until + 2 * STEPS[-1]


@dataclass(slots=True)
class Unable:
    """What this process has put aside, by primary key."""

    jobs: dict[int, PutAside] = field(default_factory=dict)
    runs: dict[int, PutAside] = field(default_factory=dict)
    puts: int = 0
    news: bool = False
    """Whether something was put aside, or taken back, since others were told."""
    to_say: list[PutAside] = field(default_factory=list)

    def put(self, rows: dict[int, PutAside], pk: int, aside: PutAside) -> None:
        """Put a row aside, for longer than the time before."""
        before = rows.get(pk)
        if before is not None:
            aside.tries, aside.said_at = before.tries + 1, before.said_at if before.why == aside.why else None
        if aside.said_at is None or aside.tried_at - aside.said_at >= SAY_EVERY:
            aside.said_at = aside.tried_at
            self.to_say.append(aside)
        rows[pk] = aside
        self.puts += 1
        self.news = True

    def told(self) -> dict[str, str]:
        """Return what other processes are told: the name and why, by the ids of jobs."""
        told = {str(pk): f"{one.name}: {one.why}" for pk, one in self.jobs.items()}
        return told | {f"{RUN}{pk}": f"{one.name}: {one.why}" for pk, one in self.runs.items()}

    def started(self, runs: Iterable[int]) -> None:
        """Note that promised attempts were claimed after all."""
        for pk in runs if self.runs else ():
            self.news |= self.runs.pop(pk, None) is not None

    def worked(self, jobs: Iterable[Job]) -> None:
        """Note that jobs were read and written after all."""
        for job in jobs:
            self.news |= self.jobs.pop(job.pk, None) is not None


def put_job_aside(engine: "Engine", job: Job, error: Exception, now: datetime) -> None:
    """Leave a job to others for a while; it stays due."""
    aside = PutAside(job.name, job.task, text_of(error), now, job.in_group, job.version)
    engine.unable.put(engine.unable.jobs, job.pk, aside)


def put_run_aside(engine: "Engine", pk: int, job: Job, error: Exception, now: datetime) -> None:
    """Leave a promised attempt of a job to others for a while; it stays promised."""
    aside = PutAside(job.name, job.task, f"run {pk}: {text_of(error)}", now, job.in_group)
    engine.unable.put(engine.unable.runs, pk, aside)


def text_of(error: Exception) -> str:
    """Return what is wrong, in one line."""
    return visible(" ".join(str(error).split()) or type(error).__name__)[:LONGEST_REASON]


def jobs_aside(engine: "Engine", now: datetime) -> list[int]:
    """Return the jobs that are not to be tried now. What was changed since is tried at once."""
    aside = engine.unable.jobs
    if not aside:
        return []
    versions = dict(Job.objects.using(engine.using).filter(pk__in=aside).values_list("pk", "version"))
    for pk in [pk for pk, one in aside.items() if pk not in versions or one.is_old(now)]:
        del aside[pk]
        engine.unable.news = True
    return [pk for pk, one in aside.items() if one.waits(now) and one.version == versions[pk]]


def left_to_us(engine: "Engine", jobs: QuerySet[Job], now: datetime) -> QuerySet[Job]:
    """Leave out the jobs that others look after, and those this process has put aside for now."""
    if engine.foreign_tasks:
        jobs = jobs.exclude(task__in=engine.foreign_tasks)
    if aside := jobs_aside(engine, now):
        jobs = jobs.exclude(pk__in=aside)
    return jobs


def put_unreadable_aside(engine: "Engine", decided: "Sequence[Decision]", now: datetime) -> int:
    """Leave to others what cannot be read here, and note what could be read after all; returns how many were left."""
    unread = [(decision.job, decision.error) for decision in decided if decision.error is not None]
    for job, error in unread:
        put_job_aside(engine, job, error, now)
    if engine.unable.jobs:
        engine.unable.worked(decision.job for decision in decided if not decision.waits)
    return len(unread)


def runs_aside(engine: "Engine", now: datetime) -> list[int]:
    """Return the promised attempts that are not to be tried now."""
    runs = engine.unable.runs
    for pk in [pk for pk, one in runs.items() if one.is_old(now)]:
        del runs[pk]
        engine.unable.news = True
    return [pk for pk, one in runs.items() if one.waits(now)]


def forget_old(engine: "Engine", now: datetime) -> None:
    """Forget what has not been due since, and tell so. Claims do it as well, but only when something is due."""
    if engine.unable.jobs or engine.unable.runs:
        jobs_aside(engine, now)
        runs_aside(engine, now)
        tell_others(engine, now)


def tell_others(engine: "Engine", now: datetime) -> None:
    """List what this process cannot do in its row, and call a job invalid that no live instance can run."""
    unable = engine.unable
    if not unable.news:
        return
    _say(unable)
    with write_transaction(engine.using):
        Instance.objects.using(engine.using).filter(pk=engine.instance_id).update(unable=unable.told())
        others = Instance.objects.using(engine.using).dispatching().alive(engine.dead_before(now))
        theirs = list(others.exclude(pk=engine.instance_id))
        for pk, one in sorted(unable.jobs.items()):  # in the order in which claims and ends lock jobs
            if all(str(pk) in other.unable for other in theirs if other.serves(one.task, one.group)):
                _call_invalid(engine, pk, one)
    unable.news = False


def tasks_of_told(using: str, instances: Iterable[Instance]) -> dict[str, tuple[str, str]]:
    """Return task and group of each job and attempt that one of the instances lists, by what it is listed as."""
    listed = {key for one in instances for key in one.unable}
    jobs = [key for key in listed if key.isdigit()]
    runs = [key.removeprefix(RUN) for key in listed if key.startswith(RUN)]
    rows = Job.objects.using(using).filter(pk__in=jobs).only("task", "group")
    attempts = RunLog.objects.using(using).filter(pk__in=runs).select_related("job").only("job__task", "job__group")
    told = {str(job.pk): job for job in rows} | {f"{RUN}{run.pk}": run.job for run in attempts}
    return {key: (job.task, job.in_group) for key, job in told.items()}


def _call_invalid(engine: "Engine", pk: int, aside: PutAside) -> None:
    """Say on the job that nothing can run it. It stays due: whichever process can run it does, and clears this."""
    problem = f"{UNABLE}{aside.why}"
    rows = Job.objects.using(engine.using).filter(pk=pk, orphaned_at__isnull=True).exclude(problem=problem)
    rewrite(rows, lambda _: {"problem": problem, "version": F("version")}, actor=SCHEDULER)


def _say(unable: Unable) -> None:
    for one in unable.to_say[:MOST_LINES]:
        text = "Job %r cannot be run by this process, which leaves it due and tries again in %s: %s"
        wait = length_words(one.wait)
        logger.error(text, one.name, wait, one.why, extra={"action": "job_put_aside", "job": one.name})
    if unsaid := unable.to_say[MOST_LINES:]:
        logger.error("Nor can %s", counted(len(unsaid), "further job"), extra={"action": "jobs_put_aside"})
    unable.to_say.clear()
