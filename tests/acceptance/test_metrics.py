"""Metrics of four workers of gunicorn: each gives the same answer, also after a restart and after pruning."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from .ledger import Ledger, manage, serve
from .servers import ServerProcess, wait_until

pytest.importorskip("prometheus_client", reason="prometheus-client is not installed")
pytestmark = pytest.mark.acceptance

RUNS = 15
TASKS: dict[str, dict[str, Any]] = {
    "quick": {"schedule": "every 0.3s", "max_runs": RUNS},
    "slow": {"schedule": "every 0.5s", "seconds": 0.7, "max_runs": RUNS},
    "fails": {
        "schedule": "every 0.4s",
        "kind": "failing",
        "max_runs": RUNS,
        "backoff": None,
        "breaker_threshold": None,
    },
}
STATUSES = {"succeeded": "success", "failed": "failure"}
GROWS = ("_total", "_bucket", "_sum", "_count")
WORKERS, SCRAPES = 4, 24
PATIENCE = 90


def scrape(server: ServerProcess) -> str:
    """Return the metrics, as one of the workers gives them over a connection of its own."""
    return server.get("/metrics/", timeout=30)


def samples(body: str) -> dict[str, float]:
    """Return the samples by their series, as they are written."""
    lines = [line.rpartition(" ") for line in body.splitlines() if not line.startswith("#")]
    return {series: float(value) for series, _, value in lines}


def grown(body: str) -> dict[str, float]:
    """Return those that only grow."""
    return {series: value for series, value in samples(body).items() if series.partition("{")[0].endswith(GROWS)}


def counted(ledger: Ledger) -> dict[str, float]:
    """Return what the rows of the ledger say of runs that have ended."""
    ended = Counter((row.job, STATUSES[row.status]) for row in ledger.rows() if row.status in STATUSES)
    series = 'scheduler_task_runs_total{{status="{}",task="{}",trigger="schedule"}}'
    return {series.format(status, job): count for (job, status), count in ended.items()}


def at_rest(server: ServerProcess) -> str:
    """Wait until all workers take part and all runs have ended; return what each of many scrapes is."""

    def rests() -> bool:
        found = samples(scrape(server))
        states = [f'scheduler_job_state{{state="finished",task="{name}"}}' for name in TASKS]
        return found["scheduler_instances"] == WORKERS and all(found.get(state) for state in states)

    wait_until(rests, PATIENCE, "all jobs have finished")
    bodies = {scrape(server) for _ in range(SCRAPES)}
    assert len(bodies) == 1
    return bodies.pop()


def test_four_workers_give_one_answer_across_a_restart_and_after_pruning_MX1_MX2(
    ledger_of: Callable[[dict[str, dict[str, Any]]], Ledger],
) -> None:
    ledger = ledger_of(TASKS)
    ledger.env["LEDGER_METRICS"] = "1"
    (ledger.folder / "fails").touch()
    with serve(ledger, "gunicorn", workers=WORKERS) as server:
        before: dict[str, float] = {}
        for _ in range(SCRAPES):
            now = grown(scrape(server))
            assert {series: value for series, value in before.items() if now[series] < value} == {}
            before = now
        first = at_rest(server)
        assert counted(ledger).items() <= samples(first).items()
        assert sum(counted(ledger).values()) == RUNS * len(TASKS)
        server.stop(seconds=30)
    files = ledger.folder / "multiprocess"
    files.mkdir()
    ledger.env["PROMETHEUS_MULTIPROC_DIR"] = str(files)
    with serve(ledger, "gunicorn", workers=WORKERS) as server:
        assert at_rest(server) == first
        done = manage(ledger, "prune_runs", "--keep", "2")
        assert done.returncode == 0, done.stderr
        assert len(ledger.rows()) < RUNS
        assert at_rest(server) == first


def test_workers_that_are_recycled_every_few_requests_let_no_counter_fall_MX2(
    ledger_of: Callable[[dict[str, dict[str, Any]]], Ledger],
) -> None:
    ledger = ledger_of(TASKS)
    ledger.env["LEDGER_METRICS"] = "1"
    (ledger.folder / "fails").touch()
    with serve(ledger, "gunicorn", "--max-requests", "8", "--max-requests-jitter", "2", workers=WORKERS) as server:
        before: dict[str, float] = {}

        def is_over() -> bool:
            nonlocal before
            now = grown(scrape(server))
            assert {series: value for series, value in before.items() if now[series] < value} == {}
            before = now
            return sum(counted(ledger).values()) == RUNS * len(TASKS) and counted(ledger).items() <= now.items()

        wait_until(is_over, PATIENCE, "all runs have ended and are counted")
        assert {frozenset(grown(scrape(server)).items()) for _ in range(SCRAPES)} == {frozenset(before.items())}
        assert server.output().count("Booting worker") > WORKERS, "some were recycled"
