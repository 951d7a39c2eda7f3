"""100 jobs and 100,000 jobs in the database: what a tick, a start and the memory cost."""

import json
import subprocess
import sys
import time
from datetime import timedelta
from statistics import median
from typing import Any

from tests.benchmarks import bench_latency, project
from tests.benchmarks.figures import Figure

SIZES = (100, 100_000)
TICKS = 300
STARTS = 100
BATCH = 5000


def fill(count: int) -> None:
    """Make the database with so many jobs that are due in a day."""
    from scheduler.models import Job
    from scheduler.schedules import Every

    project.create_tables()
    due, schedule = project.now() + timedelta(days=1), Every(days=1)
    for start in range(0, count, BATCH):
        Job.objects.bulk_create(
            project.planned(f"idle {n}", schedule, due) for n in range(start, min(count, start + BATCH))
        )


def look() -> dict[str, float]:
    """Run the scheduler on the database as it is."""
    bench_latency.register_noting()
    project.register_nothing()
    before = project.resident_megabytes()
    with project.running() as runner:
        found = bench_latency.latencies(STARTS)
        after, peak = project.resident_megabytes(), project.resident_megabytes("VmHWM")
        tick = _tick_seconds(runner.engine)
    return {"tick": tick * 1e6, "latency": median(found), "memory": after - before, "peak": peak - before}


def _tick_seconds(engine: Any) -> float:
    """Return the median of idle ticks, in a thread that nobody disturbs."""
    from scheduler.engine.tick import tick

    seconds = []
    for _ in range(TICKS):
        start = time.perf_counter()
        tick(engine, project.now(), ahead=timedelta(seconds=0.25), capacity=4)
        seconds.append(time.perf_counter() - start)
    return median(seconds)


def main(role: str, count: int) -> None:
    """Be a child: fill a database, or look at it."""
    project.setup(name=f"scale{count}")
    if role == "fill":
        fill(count)
    else:
        print(json.dumps(look()))


def child(role: str, count: int) -> str:
    """Run a step in a process of its own, so that its memory is its own."""
    command = f"from tests.benchmarks.bench_scale import main; main({role!r}, {count})"
    return subprocess.run([sys.executable, "-c", command], check=True, capture_output=True, text=True).stdout


def measure() -> list[Figure]:
    seen = []
    for count in SIZES:
        child("fill", count)
        seen.append(json.loads(child("look", count)))
    few, many = seen
    return [
        Figure("idle tick, 100,000 jobs", many["tick"], "µs", 1.5 * few["tick"], note=f"100: {few['tick']:.0f} µs"),
        Figure(
            "start latency p50, 100,000 jobs", many["latency"], "ms", 1.5 * few["latency"],
            note=f"100: {few['latency']:.2g} ms",
        ),
        Figure(
            "memory for 100,000 jobs", many["memory"] - few["memory"], "MB", 20.0,
            note=f"at its peak {many['peak'] - few['peak']:.0f} MB",
        ),
    ]  # fmt: skip
