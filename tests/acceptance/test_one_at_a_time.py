"""SCHEDULER_DEFAULT_GROUP with a limit of 1: whatever the jobs and the processes, one run goes on at a time."""

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import pytest

from .ledger import Ledger, run_scheduler
from .servers import wait_until

pytestmark = pytest.mark.acceptance
JOBS = {f"job{number}": {"schedule": f"every {2 + number}s", "seconds": 0.3} for number in range(4)}


@pytest.mark.parametrize(("group", "is_serial"), [("serial", True), ("", False)])
def test_the_runs_of_all_jobs_follow_one_another_over_two_processes_I15(
    ledger_of: Callable[[dict[str, dict[str, Any]]], Ledger], group: str, is_serial: bool
) -> None:
    ledger = ledger_of(JOBS)
    ledger.env |= {"LEDGER_DEFAULT_GROUP": group}
    with ExitStack() as stack:
        servers = [stack.enter_context(run_scheduler(ledger)) for _ in range(2)]
        wait_until(lambda: all(len(ledger.starts(job)) > 2 for job in JOBS), 90, "every job has run three times")
        assert [server.stop(seconds=60) for server in servers] == [0, 0]
    ledger.check_once()
    assert (at_once(ledger) == 1) is is_serial, "and without the switch they overlap"


def at_once(ledger: Ledger) -> int:
    """Return how many runs went on at once, by the journal."""
    going = highest = 0
    for line in sorted(ledger.lines(), key=lambda line: line.at):
        going += 1 if line.event == "start" else -1
        highest = max(highest, going)
    return highest
