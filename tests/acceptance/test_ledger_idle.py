"""What a process costs that has nothing to do: U1."""

import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from .ledger import Ledger, run_scheduler
from .servers import wait_until

pytestmark = pytest.mark.acceptance

JOBS = 100
SETTLED_SECONDS = 4.0
WATCHED_SECONDS = 16.0


def cpu_seconds(pid: int) -> float:
    """Return the processor time that a process has taken so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def let_pass(seconds: float) -> None:
    end = time.monotonic() + seconds  # noqa: TID251
    wait_until(lambda: time.monotonic() >= end, seconds + 10)  # noqa: TID251


def test_a_hundred_hourly_jobs_cost_a_hundredth_of_a_core_and_a_query_a_second_at_most_U1(
    ledger_of: Callable[[dict[str, dict[str, Any]]], Ledger],
) -> None:
    ledger = ledger_of({f"job-{number}": {"schedule": "every 1h"} for number in range(JOBS)})
    ledger.env |= {"LEDGER_POLL": "5", "LEDGER_HEARTBEAT": "10"}  # the defaults
    trace = ledger.folder / "trace.jsonl"
    trace.touch()
    with run_scheduler(ledger) as server:
        planned = "SELECT count(*) FROM scheduler_job WHERE next_run_at IS NOT NULL"
        wait_until(lambda: ledger.query(planned) == [(JOBS,)], what="all are planned")
        let_pass(SETTLED_SECONDS)
        spent, written = cpu_seconds(server.pid), len(trace.read_text().splitlines())
        let_pass(WATCHED_SECONDS)
        spent = cpu_seconds(server.pid) - spent
        lines = [json.loads(line) for line in trace.read_text().splitlines()[written:]]
        assert server.stop() == 0
    queries = [line["sql"] for line in lines if line["event"] == "query"]
    assert queries, "it looks, and its heart beats"
    assert len(queries) <= WATCHED_SECONDS
    assert spent < 0.01 * WATCHED_SECONDS
    assert [line["name"] for line in lines if line["event"] == "thread"] == []
