"""What a scrape of the metrics of 1,000 jobs takes, and what ten scrapes a second cost the starts of a burst."""

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from statistics import median, quantiles

from tests.benchmarks import bench_latency, project
from tests.benchmarks.figures import Figure

JOBS = 1000
RUNS_EACH = 100
KINDS = 2
"""Rows of counters of each job."""
SCRAPES = 40
A_SECOND = 10
STARTS = 500
"""So many jobs are due one after the other: twenty seconds."""
ROUNDS = 2
MOST_MS, MOST_QUERIES, MOST_ABOVE = 100.0, 5, 20.0
LABELS = "application/openmetrics-text;version=1.0.0"


def fill() -> None:
    """Make the jobs, with counters and runs of the past."""
    from scheduler.models import Job, RunLog, Status, Tally
    from scheduler.schedules import Every

    Tally.objects.all().delete()
    start = project.now()
    jobs = Job.objects.bulk_create(
        project.planned(f"job {n:04}", Every(hours=9), project.soon(30_000)) for n in range(JOBS)
    )
    Tally.objects.bulk_create(
        Tally(
            job_id=job.pk, status=status, cause="schedule", took_within=1000, late_within=50, count=99, took=7, late=5
        )
        for job in jobs
        for status in ("succeeded", "failed")[:KINDS]
    )
    ended = {"started_at": start, "finished_at": start, "status": Status.SUCCEEDED}
    for number in range(RUNS_EACH):
        at = start - project.timedelta(minutes=number + 1)
        RunLog.objects.bulk_create(RunLog(job=job, scheduled_for=at, **ended) for job in jobs)


def scrapes() -> tuple[list[float], list[float], int]:
    """Return the milliseconds of some scrapes, those of their CPU, and how many questions one asks."""
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    from scheduler.metrics.exposition import exposition

    walls, cpus = [], []
    for _ in range(SCRAPES):
        wall, cpu = time.perf_counter(), time.thread_time()
        exposition(LABELS)
        walls.append((time.perf_counter() - wall) * 1000)
        cpus.append((time.thread_time() - cpu) * 1000)
    with CaptureQueriesContext(connection) as caught:
        exposition(LABELS)
    return walls, cpus, len(caught)


def scrape_for_ever(kind: str) -> None:
    """Be a process that is scraped ten times a second, or that computes as long and asks no database."""
    project.setup(name="scrape")
    from scheduler.metrics.exposition import exposition

    began = time.thread_time()
    exposition(LABELS)
    began = time.thread_time()
    exposition(LABELS)
    cost = time.thread_time() - began
    following = time.monotonic()  # noqa: TID251
    while True:
        if kind == "scraped":
            exposition(LABELS)
        else:
            began = time.thread_time()
            while time.thread_time() < began + cost:
                pass
        print(kind, flush=True)
        following += 1 / A_SECOND
        time.sleep(max(0.0, following - time.monotonic()))  # noqa: TID251


@contextmanager
def beside(kind: str) -> Iterator[list[str]]:
    """Have another process scraped, or busy, within the block; its lines are there after it."""
    command = [sys.executable, "-c", f"from tests.benchmarks.bench_scrape import *; scrape_for_ever({kind!r})"]
    lines: list[str] = []
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    process.stdout.readline()
    try:
        yield lines
    finally:
        process.terminate()
        lines += process.stdout.readlines()
        process.wait()


def starts() -> float:
    """Return the 99th percentile of the start latency of jobs that are due one after the other, in milliseconds."""
    from scheduler.models import Job, RunLog

    RunLog.objects.filter(job__name__startswith="single").delete()
    Job.objects.filter(name__startswith="single").delete()
    bench_latency._noted.clear()
    return quantiles(bench_latency.latencies(STARTS), n=100)[98]


def measure() -> list[Figure]:
    project.setup(name="scrape")
    project.create_tables()
    bench_latency.register_noting()
    project.register_nothing()
    fill()
    alone, busy, scraped, scrapes_made = [], [], [], 0
    with project.running():
        walls, cpus, queries = scrapes()
        for _ in range(ROUNDS):
            alone.append(starts())
            with beside("busy"):
                busy.append(starts())
            with beside("scraped") as lines:
                scraped.append(starts())
            scrapes_made += len(lines)
    note = f"median {median(walls):.0f} ms; CPU {min(cpus):.0f} ms; {JOBS * RUNS_EACH:,} runs in the log"
    above = (min(scraped) / min(busy) - 1) * 100
    of_starts = (
        f"{min(scraped):.2f} ms, {min(busy):.2f} ms beside a process that computes as long, {min(alone):.2f} ms alone;"
        f" best of {ROUNDS}; {scrapes_made} scrapes"
    )
    return [
        Figure(f"scrape of {JOBS:,} jobs", min(walls), "ms", MOST_MS, note=note),
        Figure("questions of a scrape", queries, "", MOST_QUERIES),
        Figure(
            f"p99 of the start latency with {A_SECOND} scrapes a second", above, "% more", MOST_ABOVE, note=of_starts
        ),
    ]
