"""Signals that end a process stop its scheduler first: nothing is left behind."""

import signal
from collections.abc import Callable
from typing import Any

import pytest

from .ledger import Ledger, complains, run_scheduler
from .servers import wait_until

pytestmark = pytest.mark.acceptance
LedgerOf = Callable[[dict[str, dict[str, Any]]], Ledger]

SIGNALS = [signal.SIGTERM, signal.SIGHUP]
TASKS = {"second": {"schedule": "every 1s", "kind": "patient", "seconds": 30.0}}


@pytest.mark.parametrize("number", SIGNALS)
@pytest.mark.parametrize(("program", "code"), [(["manage.py", "run_scheduler"], 0), (["script.py"], None)])
def test_a_signal_leaves_neither_run_nor_instance_behind_I18(
    program: list[str], code: int | None, number: signal.Signals, ledger_of: LedgerOf
) -> None:
    """A script that starts the scheduler ends as the signal would have ended it."""
    ledger = ledger_of(TASKS)
    with run_scheduler(ledger, *program) as server:
        wait_until(lambda: ledger.starts("second"), what="the first run")
        assert server.stop(number, seconds=30) == (-number if code is None else code)
        assert not complains(server)
    ledger.check_clean_stop()
    assert {row.status for row in ledger.rows()} <= {"lost", "pending", "succeeded"}
