"""Django Tasks: calls that are enqueued and run at once, here by this project and by the workers of django-tasks-db."""

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from statistics import median, quantiles
from typing import Any

from django.db import connection

from tests.benchmarks import project
from tests.benchmarks.figures import Figure
from tests.benchmarks.peers.django_tasks_db import TasksDatabase
from tests.benchmarks.peers.notes import forget, notes

TASKS = 10_000
ROUNDS = 3
ROWS_OF_DJANGO = 2_000
SINGLES = 200
SPACING, SPACING_ELSEWHERE = 0.02, 0.1
SINGLES_OF_WORKERS = 20
SPACING_OF_WORKERS = 0.7
"""No multiple of the second after which its workers look, so that the singles come at any time of it."""
PATIENCE = 300.0
GOAL, GOAL_OF_LATENCY, GOAL_OF_STATEMENTS = 3000, 2.0, 3
GOAL_ELSEWHERE = 50.0
VARIANTS = (("ours",), ("elsewhere",), ("workers",))


def one_by_one(task: Any, count: int) -> None:
    for _ in range(count):
        task.enqueue()


def in_a_transaction(task: Any, count: int) -> None:
    from django.db import transaction

    with transaction.atomic():
        one_by_one(task, count)


def at_once(task: Any, count: int) -> None:
    from scheduler.contrib.tasks import enqueue_many

    enqueue_many(task, [((), {})] * count)


Ways = dict[str, Callable[[Any, int], None]]
WAYS: Ways = {"one by one": one_by_one, "in one transaction": in_a_transaction, "by enqueue_many": at_once}
WAYS_OF_WORKERS: Ways = {"one by one": one_by_one}


@contextmanager
def _counted() -> Iterator[list[str]]:
    """Count the statements of this thread."""
    seen: list[str] = []

    def note(execute: Any, sql: str, *rest: Any) -> Any:
        seen.append(sql)
        return execute(sql, *rest)

    with connection.execute_wrapper(note):
        yield seen


def statements(task: Any) -> int:
    """Return how many statements one enqueue takes, once a process has enqueued the task before."""
    with _counted() as seen:
        task.enqueue()
    return len(seen)


def latencies(task: Any, count: int, spacing: float) -> list[float]:
    """Return the milliseconds from the call of `enqueue` to the first line of the task, one call after the other."""
    forget()
    for number in range(count):
        task.enqueue(time.time())  # noqa: TID251
        time.sleep(spacing)  # noqa: TID251
        if number % 10 == 0:
            project.wait_until(lambda seen=number: len(notes()) > seen, PATIENCE)  # type: ignore[misc]
    project.wait_until(lambda: len(notes()) >= count, PATIENCE)
    return [(began - due) * 1000 for due, began in notes()]


def _rates(ways: Ways, task: Any, rounds: int, ended: Callable[[int], float]) -> Iterator[tuple[str, list[float]]]:
    """Yield of each way the tasks per second, from the first call of `enqueue` to the last committed end."""
    for name, enqueue in ways.items():
        rates, cpu = [], []
        for _ in range(rounds):
            began, used = time.time(), time.process_time()  # noqa: TID251
            enqueue(task, TASKS)
            rates.append(TASKS / (ended(TASKS) - began))
            cpu.append((time.process_time() - used) / TASKS * 1e6)
        yield name, [median(rates), min(rates), max(rates), min(cpu)]


def _figures(
    whose: str, rates: Iterator[tuple[str, list[float]]], late: list[float], each: int, *, is_ours: bool
) -> list[Figure]:
    found = []
    for name, (middle, least, most, cpu) in rates:
        note = f"{least:,.0f} to {most:,.0f}; CPU {cpu:.0f} µs a task" if is_ours else "looks once a second"
        goal = GOAL if is_ours else None
        found.append(Figure(f"{whose}: {TASKS:,} tasks {name}", middle, "tasks/s", goal, True, note))
    p99 = f"p99 {quantiles(late, n=100)[98]:.3g} ms"
    goals = (GOAL_OF_LATENCY, GOAL_OF_STATEMENTS) if is_ours else (None, None)
    return [
        *found,
        Figure(f"{whose}: start latency p50", median(late), "ms", goals[0], note=p99),
        Figure(f"{whose}: statements of an enqueue", each, "", goals[1]),
    ]


def rows_of_django(count: int) -> float:
    """Return how many such rows a second Django alone saves, one by one, each a commit: no enqueue is faster."""
    from scheduler.models import RunLog

    run = RunLog.objects.latest("pk")
    values = {"job_id": run.job_id, "trigger": run.trigger, "due_at": run.scheduled_for, "priority": 0}
    instants = [run.scheduled_for - timedelta(days=1, microseconds=n) for n in range(count)]
    began = time.perf_counter()
    for at in instants:
        RunLog.objects.create(scheduled_for=at, kwargs=run.kwargs, status="succeeded", **values)
    return count / (time.perf_counter() - began)


def _setup(**options: Any) -> None:
    backend = {"BACKEND": "scheduler.contrib.tasks.SchedulerBackend"}
    project.setup(apps=("django_tasks",), TASKS={"default": backend}, **options)


def _ours() -> list[Figure]:
    _setup()
    project.create_tables()
    from tests.benchmarks.peers.tasks import nothing, noting

    ends = project.Ends()

    def ended(count: int) -> float:
        return ends.wait(PATIENCE)

    def expecting(way: Callable[[Any, int], None]) -> Callable[[Any, int], None]:
        def enqueue(task: Any, count: int) -> None:
            project.clear_runs()
            ends.expect(count)
            way(task, count)

        return enqueue

    with project.running():
        ends.expect(100)
        one_by_one(nothing, 100)
        ended(100)
        rates = list(_rates({name: expecting(way) for name, way in WAYS.items()}, nothing, ROUNDS, ended))
        late = latencies(noting, SINGLES, SPACING)
        each, floor = statements(nothing), rows_of_django(ROWS_OF_DJANGO)
    note = f"one by one is {rates[0][1][0] / floor:.2f} of it"
    return [
        *_figures("django-inprocess-scheduler", iter(rates), late, each, is_ours=True),
        Figure("Django alone: rows saved one by one", floor, "rows/s", note=note),
    ]


def _workers() -> list[Figure]:
    peer = TasksDatabase()
    peer.start()
    from django_tasks_db.models import DBTaskResult

    from tests.benchmarks.peers.tasks import nothing, noting

    def ended(count: int) -> float:
        project.wait_until(lambda: DBTaskResult.objects.filter(finished_at__isnull=False).count() >= count, PATIENCE)
        last: Any = DBTaskResult.objects.latest("finished_at").finished_at
        return float(last.timestamp())

    try:
        DBTaskResult.objects.all().delete()
        late = latencies(noting, SINGLES_OF_WORKERS, SPACING_OF_WORKERS)
        DBTaskResult.objects.all().delete()
        rates = list(_rates(WAYS_OF_WORKERS, nothing, 1, ended))
        each = statements(nothing)
    finally:
        peer.stop()
    return _figures(f"{peer.name}, {len(peer.commands)} workers", iter(rates), late, each, is_ours=False)


def serve() -> None:
    """Be the other process: run what is enqueued until a line comes in."""
    _setup(SCHEDULER_POLL_SECONDS=30.0)
    from tests.benchmarks.peers import tasks  # noqa: F401

    with project.running() as runner:
        project.wait_until(lambda: runner.listener is None or runner.listener.is_listening)
        print("ready", flush=True)
        sys.stdin.readline()


def _elsewhere() -> list[Figure]:
    """Measure a single task in a process that only hears of it: PostgreSQL wakes it (NOTIFY)."""
    _setup()
    if connection.vendor != "postgresql":
        return []
    project.create_tables()
    from tests.benchmarks.peers.tasks import noting

    command = [sys.executable, "-c", "from tests.benchmarks.bench_enqueue import serve; serve()"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        try:
            assert other.stdout is not None
            assert other.stdout.readline().strip() == "ready"
            noting.enqueue(0.0)
            project.wait_until(notes, PATIENCE)
            late = latencies(noting, SINGLES, SPACING_ELSEWHERE)
            other.communicate("stop\n", timeout=30)
        finally:
            other.kill()
    parts = quantiles(late, n=100)
    note = f"p99 {parts[98]:.3g} ms, of {len(late)}; it looks by itself every 30 s"
    return [
        Figure("started by another process, p50", median(late), "ms", GOAL_ELSEWHERE, note=note),
        Figure("started by another process, p95", parts[94], "ms", GOAL_ELSEWHERE),
    ]


def measure(whose: str) -> list[Figure]:
    return {"ours": _ours, "elsewhere": _elsewhere, "workers": _workers}[whose]()
