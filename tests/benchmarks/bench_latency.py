"""How long after its slot a single job starts, told by the first line of its task."""

import time
from datetime import timedelta
from statistics import median, quantiles

from tests.benchmarks import project
from tests.benchmarks.figures import Figure

SLOTS = 300
SPACING_SECONDS = 0.04


def latencies(count: int) -> list[float]:
    """Return the milliseconds from slot to first line, for jobs due one after the other."""
    from scheduler.models import Job
    from scheduler.schedules import Once

    ends = project.Ends()
    ends.expect(count)
    first = project.soon(3.0)
    slots = [first + n * timedelta(seconds=SPACING_SECONDS) for n in range(count)]
    Job.objects.bulk_create(project.planned(f"single {n}", Once(at), at, "noting") for n, at in enumerate(slots))
    ends.wait()
    return list(noted)


noted: list[float] = []
"""How late each run of the task `noting` began, in milliseconds."""


def register_noting() -> None:
    """Register the task `noting`, which notes how late it is."""
    from scheduler import current_run, register

    @register("noting")
    def noting() -> None:
        at = time.time()  # noqa: TID251
        run = current_run()
        assert run is not None
        noted.append((at - run.scheduled_for.timestamp()) * 1000)


def measure() -> list[Figure]:
    project.setup()
    project.create_tables()
    register_noting()
    with project.running():
        found = latencies(SLOTS)
    note = f"{len(found)} slots, worst {max(found):.2g} ms, earliest {min(found):.2g} ms"
    return [
        Figure("start latency p50", median(found), "ms", 0.5, note=note),
        Figure("start latency p99", quantiles(found, n=100)[98], "ms", 3.0),
    ]
