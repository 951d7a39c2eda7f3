"""1,000 jobs due at one instant: from that instant to the last committed end."""

import os
import time
from datetime import datetime
from statistics import median
from typing import Any

from tests.benchmarks import project
from tests.benchmarks.figures import Figure

JOBS = 1000
ROUNDS = 7
GOAL = 10_000
GOAL_OF_SERVERS = GOAL / 2
"""Each statement goes to another process and back."""
LEAD_SECONDS = 2.0
VARIANTS = (*((journal, "every") for journal in project.PRAGMAS), ("wal", "daily"), ("wal", "once"))


def schedule(kind: str, due: datetime) -> Any:
    """Return a schedule whose slot is `due`."""
    from scheduler.schedules import DailyAt, Every, Once

    return {
        "every": lambda: Every(hours=1, anchor=due),
        "daily": lambda: DailyAt(due.hour, due.minute, due.second, timezone="Europe/Berlin"),
        "once": lambda: Once(due),
    }[kind]()


def burst(ends: project.Ends, kind: str) -> tuple[float, float]:
    """Return the runs per second of one burst, and the microseconds of CPU each run took, claim and end included."""
    from scheduler.models import Job, RunLog

    RunLog.objects.all().delete()
    Job.objects.exclude(name="nothing").delete()
    due = project.soon(LEAD_SECONDS).replace(microsecond=0)
    ends.expect(JOBS)
    Job.objects.bulk_create(project.planned(f"job {n}", schedule(kind, due), due) for n in range(JOBS))
    cpu = time.process_time()
    last_at = ends.wait()
    return JOBS / (last_at - due.timestamp()), (time.process_time() - cpu) / JOBS * 1e6


def measure(journal: str = "wal", kind: str = "every", rounds: int = ROUNDS) -> list[Figure]:
    """Measure one variant; the first round warms up."""
    project.setup(journal)
    project.create_tables()
    project.register_nothing()
    ends = project.Ends()
    with project.running():
        found = [burst(ends, kind) for _ in range(rounds)][1:]
    rates, cpu = zip(*found, strict=True)
    note = f"median of {len(rates)}, {min(rates):,.0f} to {max(rates):,.0f}; CPU {min(cpu):.0f} µs a run"
    goal = GOAL_OF_SERVERS if "DATABASE_URL" in os.environ else GOAL
    return [Figure(f"burst of {JOBS:,} {kind} jobs, journal {journal}", median(rates), "runs/s", goal, True, note)]
