"""Tasks that fork and forget to end their child: nothing of the scheduler goes on in it."""

import re
from collections.abc import Callable
from typing import Any

import pytest

from .ledger import Ledger, is_alive, run_scheduler
from .servers import wait_until

pytestmark = pytest.mark.acceptance
LedgerOf = Callable[[dict[str, dict[str, Any]]], Ledger]

KINDS = [
    ("forking", "thread"),
    ("forking", "process"),
    ("forking on the loop", "thread"),
    ("forking in a thread", "thread"),
]


@pytest.mark.parametrize(("kind", "executor"), KINDS)
def test_a_child_that_a_task_forks_and_lets_return_carries_out_nothing_I1(
    kind: str, executor: str, ledger_of: LedgerOf
) -> None:
    forks = {"schedule": "every 1s", "kind": kind, "seconds": 10.0, "executor": executor}
    others = {f"other {number}": {"schedule": "every 300ms"} for number in range(12)}
    ledger = ledger_of({"forks": forks, **others})
    with run_scheduler(ledger) as server:
        wait_until(lambda: len(ledger.starts("forks")) >= 4, what="it forks")
        assert server.stop() == 0
        logs = "".join(log for (log,) in ledger.query("SELECT log FROM scheduler_runlog"))
        ended = re.findall(r"process (\d+), forked in process \d+, returned into", server.output() + logs)
        elsewhere = {line.pid for line in ledger.starts()} - {server.pid}
    assert len(ended) >= 3
    assert not any(is_alive(int(pid)) for pid in ended)
    assert executor == "process" or not elsewhere, "a child carried out runs"
    results = dict(ledger.query("SELECT result, count(*) FROM scheduler_runlog WHERE result LIKE '%child%' GROUP BY 1"))
    assert results.keys() == {"child ended with 0"}
    ledger.check_once()
    ledger.check_clean_stop()
