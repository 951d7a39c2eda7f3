"""The pages of the admin with 1,000 jobs and a million runs: the time of one request, without the network."""

import os
import time
from datetime import timedelta
from pathlib import Path
from statistics import median
from typing import Any

import django

from tests.benchmarks import project
from tests.benchmarks.figures import Figure

JOBS = 1000
RUNS = 1_000_000
TIMES = 5
MOST_MILLISECONDS = 300.0
FAILED_OF = 97
"""One run of so many failed."""


def measure() -> list[Figure]:
    os.environ["DJANGO_SETTINGS_MODULE"] = "demo_project.settings"
    os.environ.setdefault("DATABASE_URL", f"sqlite:///{Path(os.environ['BENCH_FOLDER']).resolve()}/admin.sqlite3")
    django.setup()
    from django.test.utils import setup_test_environment

    setup_test_environment()
    project.create_tables()
    fill()
    client = boss()
    return [figure(client, name, url) for name, url in pages().items()]


def fill() -> None:
    """Make the jobs, and runs that follow each other over the last three months."""
    from scheduler.engine.db.bulk import insert_runs
    from scheduler.models import Job, RunLog, Status
    from scheduler.schedules import Every

    due, start = project.soon(3600), project.now()
    Job.objects.bulk_create(project.planned(f"job {n}", Every(minutes=5 + n % 60), due) for n in range(JOBS))
    jobs, each = list(Job.objects.order_by("pk")), RUNS // JOBS
    for number in range(each):
        at = start - timedelta(days=90) * (each - number) / each
        rows = [RunLog.of(job, scheduled_for=at, started_at=at, finished_at=at + timedelta(seconds=2)) for job in jobs]
        for place, row in enumerate(rows):
            row.status = Status.FAILED if (number * JOBS + place) % FAILED_OF == 0 else Status.SUCCEEDED
        insert_runs("default", rows)


def boss() -> Any:
    """Return a client that is logged in and may do everything."""
    from django.contrib.auth import get_user_model
    from django.test import Client

    client = Client(headers={"host": "localhost"})
    client.force_login(get_user_model().objects.create_superuser("boss", "boss@example.com", None))
    return client


def pages() -> dict[str, str]:
    from django.urls import reverse

    from scheduler.models import Job, RunLog

    job, run = Job.objects.order_by("pk")[0], RunLog.objects.order_by("-pk")[0]
    return {
        "jobs list": reverse("admin:scheduler_job_changelist"),
        "overview": reverse("admin:scheduler_job_overview"),
        "job": reverse("admin:scheduler_job_page", args=[job.pk]),
        "editor": reverse("admin:scheduler_job_change", args=[job.pk]),
        "run log": reverse("admin:scheduler_runlog_changelist"),
        "run log, failed only": reverse("admin:scheduler_runlog_changelist") + "?status__exact=failed",
        "run": reverse("admin:scheduler_runlog_change", args=[run.pk]),
    }


def figure(client: Any, name: str, url: str) -> Figure:
    taken = [request(client, url) for _ in range(1 + TIMES)]
    note = f"the first {taken[0]:.0f} ms"
    return Figure(
        f"admin: {name}, {JOBS:,} jobs and {RUNS:,} runs", median(taken[1:]), "ms", MOST_MILLISECONDS, note=note
    )


def request(client: Any, url: str) -> float:
    start = time.perf_counter()
    response = client.get(url)
    assert response.status_code == 200, (url, response.status_code)
    return (time.perf_counter() - start) * 1000
