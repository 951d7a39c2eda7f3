"""Checkpoints of real processes: an import that is killed goes on where it saved last. I3, I5."""

import os
import signal
from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from scheduler.schedules import Once

from .ledger import Ledger, now, run_scheduler
from .servers import wait_until

pytestmark = pytest.mark.acceptance
LedgerOf = Callable[[dict[str, dict[str, Any]]], Ledger]

ITEMS = [f"item {number}" for number in range(20)]


@pytest.mark.parametrize("executor", ["thread", "process"])
def test_an_import_that_is_killed_twice_has_each_item_and_none_but_the_last_before_a_kill_twice(
    executor: str, ledger_of: LedgerOf
) -> None:
    once = Once(now() + timedelta(seconds=1)).to_text()
    ledger = ledger_of({"import": {"schedule": once, "kind": "importing", "seconds": 4.0, "executor": executor}})
    for items in (5, 12):
        with run_scheduler(ledger) as server:
            wait_until(lambda count=items: len(ledger.lines(*ITEMS[:count])) >= count, what=f"{items} items")
            os.kill(server.pid, signal.SIGKILL)
    with run_scheduler(ledger) as server:
        wait_until(lambda: ledger.lines("end"), what="its end")
        wait_until(lambda: ledger.rows("import")[-1].status == "succeeded", what="its row")
        assert server.stop() == 0
    assert [row.status for row in ledger.rows("import")] == ["lost", "lost", "succeeded"]
    done = Counter(line.event for line in ledger.lines(*ITEMS))
    assert done.keys() == set(ITEMS)
    assert sum(done.values()) - len(ITEMS) <= 2, "at most the one item behind the last checkpoint, for each kill"
    assert next(line.event for line in ledger.lines(*ITEMS) if line.attempt == 3) != ITEMS[0]
    assert ledger.job("import")["state"] == "{}"
