"""The pages of the admin with 5,000 jobs and a million runs, without the network: time and queries of one request."""

import os
import time
from collections.abc import Iterator
from operator import attrgetter
from pathlib import Path
from typing import Any

import django

from tests.benchmarks import filled, project
from tests.benchmarks.figures import Figure

TIMES, BULKS = 5, 2
ANSWERS = {"confirmed": "yes", "until": "", "reason": "deploy"}
MOST_MILLISECONDS, MOST_QUERIES = 300.0, 20
MOST_SECONDS = 2.0
"""For what is done with all jobs."""


def measure() -> list[Figure]:
    os.environ["DJANGO_SETTINGS_MODULE"] = "demo_project.settings"
    os.environ.setdefault("DATABASE_URL", f"sqlite:///{Path(os.environ['BENCH_FOLDER']).resolve()}/admin.sqlite3")
    os.environ.setdefault("LOG_LEVEL", "WARNING")
    django.setup()
    project.create_tables()
    filled.register_tasks()
    filled.fill()
    client = boss()
    found = [figure for name, url in pages().items() for figure in figures(client, name, url)]
    return found + list(bulk_figures(client))


def boss() -> Any:
    """Return a client that is logged in and may do everything."""
    from django.contrib.auth import get_user_model
    from django.test import Client

    client = Client(headers={"host": "localhost"})
    users = get_user_model().objects
    client.force_login(users.filter(username="boss").first() or users.create_superuser("boss", "", None))
    return client


def pages() -> dict[str, str]:
    from django.conf import settings
    from django.urls import reverse

    from scheduler.models import Job, RunLog

    settings.SCHEDULER_NOTIFY = [{"channel": "webhook", "url": "https://example.com/hook"}]
    busy, other = Job.objects.order_by("pk")[:2]
    run, failed = RunLog.objects.order_by("-pk")[0], RunLog.objects.filter(status="failed").order_by("-pk")[0]
    jobs, runs = reverse("admin:scheduler_job_changelist"), reverse("admin:scheduler_runlog_changelist")
    failures = reverse("admin:scheduler_job_failures")
    return {
        "overview": reverse("admin:scheduler_job_overview"),
        "jobs list": jobs,
        "jobs list, broken": f"{jobs}?state=broken",
        "jobs list, due within the hour": f"{jobs}?state=due",
        "jobs list, a text": f"{jobs}?q=job+12",
        "job with 200 runs": reverse("admin:scheduler_job_page", args=[other.pk]),
        "job with 100,000 runs": reverse("admin:scheduler_job_page", args=[busy.pk]),
        "run log of that job": reverse("admin:scheduler_job_runs", args=[busy.pk]),
        "editor": reverse("admin:scheduler_job_change", args=[other.pk]),
        "run log": runs,
        "run log, failed": f"{runs}?outcome=failed",
        "run log, late in a day": f"{runs}?outcome=late&period=day",
        "run log, text of an error": f"{runs}?q=warehouse",
        "run": reverse("admin:scheduler_runlog_change", args=[run.pk]),
        "run that failed": reverse("admin:scheduler_runlog_change", args=[failed.pk]),
        "what failed most, a day": failures,
        "what failed most, 30 days": f"{failures}?period=month",
        "instances": reverse("admin:scheduler_instance_changelist"),
        "index of the app": reverse("admin:app_list", args=["scheduler"]),
        "groups": reverse("admin:scheduler_job_groups"),
        "enqueued": reverse("admin:scheduler_job_enqueued"),
        "notices": reverse("admin:scheduler_notice_changelist"),
    }


def figures(client: Any, name: str, url: str) -> Iterator[Figure]:
    """Yield the time and the queries of a page."""
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    taken = [request(client, url) for _ in range(1 + TIMES)]
    wall, cpu = min(taken[1:])
    note = f"{cpu:.0f} ms of this process; the first {taken[0][0]:.0f} ms"
    yield Figure(f"admin: {name}", wall, "ms", MOST_MILLISECONDS, note=note)
    with CaptureQueriesContext(connection) as queries:
        request(client, url)
    yield Figure(f"admin: {name}", len(queries), "queries", MOST_QUERIES)


def request(client: Any, url: str) -> tuple[float, float]:
    """Return the milliseconds of one request, and those that this process worked."""
    wall, cpu = time.perf_counter(), time.process_time()
    response = client.get(url)
    assert response.status_code == 200, (url, response.status_code)
    return (time.perf_counter() - wall) * 1000, (time.process_time() - cpu) * 1000


def bulk_figures(client: Any) -> Iterator[Figure]:
    """Yield what it takes to do something with all jobs at once."""
    from scheduler.models import Job

    everything = {"select_across": "1", "_selected_action": [str(Job.objects.order_by("name")[0].pk)]}
    stopped = {"broken_at": project.now(), "consecutive_failures": 3, "wake_at": None, "next_run_at": None}
    for action in ("reset", "pause", "resume"):
        found = []
        for _ in range(BULKS):
            if action == "reset":
                Job.objects.update(**stopped)
            elif action == "resume":
                bulk(client, {"action": "pause", **everything})
            found.append(bulk(client, {"action": action, **everything}))
        yield min(found, key=attrgetter("value"))


def bulk(client: Any, asked: dict[str, Any]) -> Figure:
    from django.db import connection
    from django.test.utils import CaptureQueriesContext
    from django.urls import reverse

    with CaptureQueriesContext(connection) as queries:
        wall, cpu = time.perf_counter(), time.process_time()
        response = client.post(reverse("admin:scheduler_job_changelist"), asked | ANSWERS)
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    assert response.status_code == 302, response.content.decode()
    note = f"{cpu:.2f} s of this process, {len(queries)} queries"
    return Figure(f"admin: {asked['action']} all {filled.JOBS:,} jobs", wall, "s", MOST_SECONDS, note=note)
