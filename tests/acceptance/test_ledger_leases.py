"""A run that takes longer than the lease of its process: F2."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from typing import Any

import pytest

from scheduler.engine.base import HUNG_AFTER
from scheduler.schedules import Once

from .ledger import Ledger, noise, now, run_scheduler
from .servers import wait_until

pytestmark = [pytest.mark.acceptance, pytest.mark.timeout(300)]
LedgerOf = Callable[[dict[str, dict[str, Any]]], Ledger]

PROCESSES = 3


def lease() -> float:
    """Return a short time to live, which a busy machine still leaves time to renew."""
    return min(10.0, 2.0 + 2.0 * noise())


@contextmanager
def three_processes(ledger: Ledger, ttl: float) -> Iterator[None]:
    """Run three schedulers; all of them must end well, and nothing be held."""
    ledger.env |= {"LEDGER_TTL": str(ttl), "LEDGER_HEARTBEAT": "0.5"}
    with ExitStack() as stack:
        servers = [stack.enter_context(run_scheduler(ledger)) for _ in range(PROCESSES)]
        yield
        assert [server.stop(seconds=60) for server in servers] == [0] * PROCESSES
        ledger.check_clean_stop()


def verdict(ledger: Ledger) -> list[tuple[Any, ...]]:
    return ledger.query("SELECT attempt, status, note FROM scheduler_runlog ORDER BY attempt")


def test_a_run_that_outlives_many_leases_is_executed_once_F2(ledger_of: LedgerOf) -> None:
    ttl = lease()
    once = Once(now() + timedelta(seconds=2)).to_text()
    ledger = ledger_of({"long": {"schedule": once, "seconds": 2.5 * ttl}})
    with three_processes(ledger, ttl):
        wait_until(lambda: ledger.lines("end"), 30 + 4 * ttl, "it ends")
        wait_until(lambda: verdict(ledger) == [(1, "succeeded", "")], what="its end is written")
    assert len(ledger.starts()) == 1


def test_a_call_that_lets_no_thread_renew_the_lease_is_not_doubled_and_its_end_is_refused_F2(
    ledger_of: LedgerOf,
) -> None:
    """One call in C holds the interpreter for so long that the others take the process for hung, though it lives."""
    ttl = lease()
    hung = HUNG_AFTER * ttl
    once = Once(now() + timedelta(seconds=2)).to_text()
    ledger = ledger_of({"c": {"schedule": once, "kind": "deaf", "seconds": hung + 2 * ttl, "on_lost": "skip"}})
    with three_processes(ledger, ttl):
        wait_until(
            lambda: [row for row in verdict(ledger) if row[1] == "lost"], 30 + hung + 4 * ttl, "it is declared lost"
        )
        assert ledger.lines("end") == [], "it still holds the interpreter"
        wait_until(lambda: verdict(ledger)[0][2].startswith("finished late"), 30 + 10 * ttl, "its late end is noted")
        wait_until(lambda: ledger.instances() == PROCESSES, what="its process takes part again")
    assert [row[:2] for row in verdict(ledger)] == [(1, "lost")]
    assert (len(ledger.starts()), len(ledger.lines("end"))) == (1, 1)
    job = ledger.job("c")
    assert (job["successes"], job["losses"], job["active_runs"]) == (0, 1, 0)
