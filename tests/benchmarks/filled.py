"""A site of some size in the database: thousands of jobs with all kinds of schedules, and a million runs of them."""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any

from django.db import connection

from tests.benchmarks import project

JOBS = 5000
RUNS = 1_000_000
OF_ONE = 100_000
"""Runs of the first job alone."""
TASKS = 40
DAYS = 90
FAILED_OF = 97
"""One run of so many failed."""
ERRORS = ("ConnectionError", "ValueError", "KeyError", "TimeoutError", "OperationalError")
AT_ONCE = 10_000
TRACEBACK = """Traceback (most recent call last):
  File "/srv/site/scheduler/executors/calling.py", line 71, in call
    return task(**kwargs)
  File "/srv/site/shop/tasks.py", line {line}, in send_to_warehouse
    response = session.post(url, json=payload, timeout=10)
  File "/srv/site/shop/warehouse.py", line {line}, in post
    raise {name}("order {line} was not taken: the warehouse did not answer in time")
{name}: order {line} was not taken: the warehouse did not answer in time
"""


def register_tasks() -> None:
    """Register the tasks of the jobs."""
    from scheduler import register

    for number in range(TASKS):
        register(f"task {number}")(lambda: None)


def fill() -> None:
    """Make the jobs and their runs, which follow each other over the last three months."""
    start = project.now()
    _make_jobs(start)
    _make_runs_of_one(start)
    _make_runs(start)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")


def _make_jobs(start: datetime) -> None:
    from scheduler.models import Job

    jobs = []
    for number, schedule in zip(range(JOBS), _schedules(), strict=False):
        job = project.planned(f"job {number:04}", schedule, schedule.next_after(start), task=f"task {number % TASKS}")
        job.group, job.last_run_at, job.last_status = f"group {number % 25}", start - timedelta(minutes=5), "succeeded"
        job.successes, job.failures, job.created_at = 198, 2, start - timedelta(days=DAYS)
        if number % 100 == 7:
            job.broken_at, job.wake_at, job.next_run_at, job.last_status = start, None, None, "failed"
        jobs.append(job)
    Job.objects.bulk_create(jobs, batch_size=AT_ONCE // 20)


def _schedules() -> Iterator[Any]:
    from scheduler.schedules import Cron, DailyAt, Every

    number = 0
    while True:
        yield Every(minutes=5 + number % 55)
        yield DailyAt(hour=number % 24, minute=number % 60)
        yield Cron(f"{number % 60} {number % 24} * * 1-5", timezone="Europe/Berlin")
        yield Cron(f"{number % 60} * * * *")
        number += 1


def _make_runs_of_one(start: datetime) -> None:
    from scheduler.engine.db.bulk import insert_runs
    from scheduler.models import Job, RunLog, Status

    job = Job.objects.order_by("pk")[0]
    for first in range(0, OF_ONE, AT_ONCE):
        rows = []
        for number in range(first, first + AT_ONCE):
            at = start - timedelta(days=DAYS) * (OF_ONE - number) / OF_ONE
            took = timedelta(milliseconds=300 + number % 977)
            rows.append(RunLog.of(job, scheduled_for=at, started_at=at, finished_at=at + took, status=Status.SUCCEEDED))
        insert_runs("default", rows)


def _make_runs(start: datetime) -> None:
    """Insert a run of every other job for each of some slots: the database makes them of the jobs it has."""
    from scheduler.models import Status

    each = -(-(RUNS - OF_ONE) // (JOBS - 1))
    for number in range(each):
        at = start - timedelta(days=DAYS) * (each - number) / each
        ended = {"scheduled_for": at, "started_at": at, "finished_at": at + timedelta(seconds=1 + number % 7)}
        name = ERRORS[number % len(ERRORS)]
        error = TRACEBACK.format(name=name, line=40 + number % 3)
        _insert_of_jobs(number, "<>", ended | {"status": Status.SUCCEEDED})
        _insert_of_jobs(number, "=", ended | {"status": Status.FAILED, "error": error, "error_class": name})


def _insert_of_jobs(number: int, sign: str, columns: dict[str, Any]) -> None:
    from scheduler.models import Job, RunLog

    sample = RunLog(**columns)
    fields: Sequence[Any] = [one for one in RunLog._meta.concrete_fields if one.attname not in ("id", "job_id")]
    values = [one.get_db_prep_save(getattr(sample, one.attname), connection) for one in fields]
    names = ", ".join(f'"{one.column}"' for one in fields)
    marks = ", ".join(["%s"] * len(fields))
    with connection.cursor() as cursor:
        cursor.execute(
            f'INSERT INTO "{RunLog._meta.db_table}" (job_id, {names}) SELECT id, {marks} FROM "{Job._meta.db_table}"'
            f" WHERE name <> 'job 0000' AND (id + {number}) %% {FAILED_OF} {sign} 0",
            values,
        )
