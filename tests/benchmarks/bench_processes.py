"""One and four processes on one database: no slot twice, and a burst no slower."""

import json
import subprocess
import sys
from collections import Counter
from datetime import datetime
from statistics import median
from typing import Any

from tests.benchmarks import project
from tests.benchmarks.figures import Figure

JOBS = 2000
ROUNDS = 3
LEAD_SECONDS = 3.0


def worker(name: str) -> None:
    """Be one process: run until a line comes in, then say what ran here and when the last end was committed."""
    project.setup(name=name, SCHEDULER_POLL_SECONDS=1.0)
    ran: list[str] = []
    _register_counting(ran)
    ends = project.Ends()
    with project.running():
        print("ready", flush=True)
        sys.stdin.readline()
    print(json.dumps({"ran": ran, "last_at": ends.last_at}), flush=True)


def _register_counting(ran: list[str]) -> None:
    from scheduler import current_run, register

    @register("counting")
    def counting() -> None:
        run = current_run()
        assert run is not None
        ran.append(run.job)


def burst(count: int, name: str) -> tuple[float, list[int]]:
    """Return the runs per second of one burst on so many processes, and how many each did."""
    project.clear()
    processes = [_start_worker(name) for _ in range(count)]
    try:
        for process in processes:
            assert process.stdout.readline().strip() == "ready"
        due = _insert()
        project.wait_until(lambda: project.now() > due)
        project.wait_until(_all_ended)
        said = [json.loads(process.communicate("stop\n", timeout=30)[0]) for process in processes]
    finally:
        for process in processes:
            process.kill()
    _check([one["ran"] for one in said])
    return JOBS / (max(one["last_at"] for one in said) - due.timestamp()), [len(one["ran"]) for one in said]


def _start_worker(name: str) -> Any:
    command = f"from tests.benchmarks.bench_processes import worker; worker({name!r})"
    return subprocess.Popen(
        [sys.executable, "-c", command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )  # fmt: skip


def _insert() -> datetime:
    from scheduler.models import Job
    from scheduler.schedules import Once

    due = project.soon(LEAD_SECONDS).replace(microsecond=0)
    Job.objects.bulk_create(project.planned(f"job {n}", Once(due), due, "counting") for n in range(JOBS))
    return due


def _all_ended() -> bool:
    from scheduler.models import RunLog

    return bool(RunLog.objects.filter(due_at__isnull=True).count() >= JOBS)


def _check(ran: list[list[str]]) -> None:
    """Every job ran once, in all processes together, and stands once in the ledger."""
    from scheduler.models import RunLog

    counted = Counter(name for names in ran for name in names)
    assert len(counted) == JOBS
    assert set(counted.values()) == {1}, counted.most_common(3)
    assert RunLog.objects.count() == JOBS


def measure() -> list[Figure]:
    name = "processes"
    project.setup(name=name)
    project.create_tables()
    one, four = [[burst(count, name) for _ in range(ROUNDS)] for count in (1, 4)]
    single, several = median(rate for rate, _ in one), median(rate for rate, _ in four)
    shares = " + ".join(map(str, four[-1][1]))
    return [
        Figure(f"burst of {JOBS:,} jobs, one process", single, "runs/s"),
        Figure(
            f"burst of {JOBS:,} jobs, four processes", several, "runs/s", single, True, f"shared {shares}, none twice"
        ),
    ]
