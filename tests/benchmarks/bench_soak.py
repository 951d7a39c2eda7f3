"""A long run with 200 jobs: memory, threads, open files and connections must stay where they are after a while."""

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.benchmarks import project
from tests.benchmarks.figures import Figure

MINUTES = float(os.environ.get("SOAK_MINUTES", "30"))
WARM_UP = 0.2
"""The part of the time that does not count: pools fill, caches grow to their size."""
LOOK_SECONDS = 5.0
JOBS = 200
MOST_MEGABYTES = 5.0
MOST_FILES = 2
"""The journal of SQLite comes and goes."""


def plain() -> str:
    return "x" * 1000


async def awaited() -> str:
    return "done"


def queries() -> int:
    from scheduler.models import Job

    return int(Job.objects.count())


def talks() -> None:
    import logging

    for line in range(20):
        logging.getLogger("scheduler.task").info("line %d of a run that says much", line)


def fails() -> None:
    raise ValueError("on purpose")


TASKS: tuple[Callable[[], Any], ...] = (plain, awaited, queries, talks, fails)


def files() -> int:
    """Return how many files, sockets and connections this process has open."""
    return len(list(Path("/proc/self/fd").iterdir()))


FIGURES: dict[str, Callable[[], float]] = {
    "resident memory": project.resident_megabytes,
    "threads": threading.active_count,
    "open files, sockets and connections": files,
}


def watch(minutes: float) -> dict[str, tuple[float, float]]:
    """Return the most of each figure in the first and in the second half of the time that counts."""
    start, seconds = time.monotonic(), minutes * 60  # noqa: TID251
    most = {name: [0.0, 0.0] for name in FIGURES}
    while (passed := (time.monotonic() - start) / seconds) < 1:  # noqa: TID251
        half = int((passed - WARM_UP) / (1 - WARM_UP) * 2)
        for name, figure in FIGURES.items() if passed > WARM_UP else ():
            most[name][half] = max(most[name][half], figure())
        time.sleep(LOOK_SECONDS)  # noqa: TID251
    return {name: (first, second) for name, (first, second) in most.items()}


def plan() -> None:
    from scheduler import register
    from scheduler.models import Job
    from scheduler.schedules import Every

    for task in TASKS:
        register(task.__name__)(task)
    every = [Every(seconds=1 + number % 10) for number in range(JOBS)]
    Job.objects.bulk_create(
        Job(name=f"job {number}", task=TASKS[number % len(TASKS)].__name__, schedule=schedule)
        for number, schedule in enumerate(every)
    )


def measure() -> list[Figure]:
    from django.db.models import Sum

    project.setup(SCHEDULER_RETENTION_RUNS=200)
    project.create_tables()
    plan()
    with project.running():
        most = watch(MINUTES)
    from scheduler.models import Job

    ran = Job.objects.aggregate(all=Sum("successes") + Sum("failures"))["all"]
    note = f"{MINUTES:g} minutes, {JOBS} jobs, {ran:,} runs"
    goals = {"resident memory": MOST_MEGABYTES, "threads": 0, "open files, sockets and connections": MOST_FILES}
    return [
        Figure(
            f"soak: {name}, second half above the first",
            second - first,
            "MB" if name == "resident memory" else "",
            goals[name],
            note=f"{first:.4g} → {second:.4g}; {note}",
        )
        for name, (first, second) in most.items()
    ]
