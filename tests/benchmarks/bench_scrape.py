"""What a scrape of 1,000 jobs and a million runs takes, and what ten a second cost the starts of bursts."""

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from statistics import median, quantiles

from tests.benchmarks import bench_latency, project
from tests.benchmarks.figures import Figure

JOBS = 1000
RUNS_EACH = 1000
KINDS = 2
"""Rows of counters of each job."""
SCRAPES = 40
A_SECOND = 10
BURST, BURSTS, SPACING_SECONDS = 500, 15, 2.0
"""So many jobs are due at once, so often: half a minute, and one minute in both rounds."""
ROUNDS = 2
MOST_MS, MOST_QUERIES, MOST_ABOVE = 100.0, 5, 20.0
LABELS = "application/openmetrics-text;version=1.0.0"


def fill() -> None:
    """Make the jobs, with counters and runs of the past."""
    from scheduler.engine.db.bulk import insert_runs
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
        at = start - timedelta(minutes=number + 1)
        insert_runs("default", [RunLog.of(job, scheduled_for=at, **ended) for job in jobs])


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


def scrape_for_ever() -> None:
    """Be a process that is scraped ten times a second."""
    project.setup(name="scrape")
    from scheduler.metrics.exposition import exposition

    following = time.monotonic()  # noqa: TID251
    while True:
        exposition(LABELS)
        print("scraped", flush=True)
        following += 1 / A_SECOND
        time.sleep(max(0.0, following - time.monotonic()))  # noqa: TID251


@contextmanager
def scraped() -> Iterator[list[str]]:
    """Have another process scraped within the block; a line for each time is there after it."""
    command = [sys.executable, "-c", "from tests.benchmarks.bench_scrape import *; scrape_for_ever()"]
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
    """Return the 99th percentile of the start latency in bursts, in milliseconds: half of the jobs are due together."""
    from scheduler.engine.plan_basis import basis_of
    from scheduler.models import Job
    from scheduler.schedules import Every

    due, ends = project.soon(3.0), project.Ends()
    late = bench_latency.noted
    late.clear()
    ends.expect(BURST * BURSTS)
    some = Job.objects.filter(pk__in=list(Job.objects.order_by("pk").values_list("pk", flat=True)[:BURST]))
    every = Every(seconds=SPACING_SECONDS, anchor=due)
    basis = str(basis_of(Job(task="noting", schedule=every)))  # as a plan notes it: else the sweep mends each of them
    some.update(task="noting", schedule=every, plan_basis=basis, wake_at=due, next_run_at=due, stale=False)
    ends.wait()
    some.update(wake_at=project.soon(30_000), next_run_at=project.soon(30_000), stale=False)
    return quantiles(late[: BURST * BURSTS], n=100)[98]


def measure() -> list[Figure]:
    project.setup(name="scrape")
    project.create_tables()
    bench_latency.register_noting()
    project.register_nothing()
    fill()
    alone, beside, scrapes_made = [], [], 0
    with project.running():
        walls, cpus, queries = scrapes()
        for _ in range(ROUNDS):
            alone.append(starts())
            with scraped() as lines:
                beside.append(starts())
            scrapes_made += len(lines)
    note = f"median {median(walls):.0f} ms; CPU {min(cpus):.0f} ms; {JOBS * RUNS_EACH:,} runs in the log"
    above = (min(beside) / min(alone) - 1) * 100
    of_starts = f"{min(beside):.1f} ms, {min(alone):.1f} ms alone; best of {ROUNDS}; {scrapes_made} scrapes"
    return [
        Figure(f"scrape of {JOBS:,} jobs", min(walls), "ms", MOST_MS, note=note),
        Figure("questions of a scrape", queries, "", MOST_QUERIES),
        Figure(
            f"p99 of the start latency in bursts of {BURST} with {A_SECOND} scrapes a second",
            above,
            "% more",
            MOST_ABOVE,
            note=of_starts,
        ),
    ]
