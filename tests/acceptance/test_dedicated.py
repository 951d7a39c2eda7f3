"""Dedicated processes of some groups: each slot once, where it belongs; where nothing takes one, health is red."""

import os
import signal
from collections.abc import Callable
from typing import Any

import pytest

from .ledger import Ledger, manage, run_scheduler
from .servers import wait_until

pytestmark = pytest.mark.acceptance
LedgerOf = Callable[[dict[str, dict[str, Any]]], Ledger]

TASKS = {
    "heavy": {"schedule": "every 1s", "group": "heavy"},
    "light": {"schedule": "every 1s", "group": "light"},
    "free": {"schedule": "every 1s"},
}
SECONDS = 3


def test_two_dedicated_processes_share_the_groups_and_a_killed_one_turns_health_red(ledger_of: LedgerOf) -> None:
    ledger = ledger_of(TASKS)
    of_heavy, of_others = ("--only-group", "heavy"), ("--except-group", "heavy")
    with run_scheduler(ledger, "manage.py", "run_scheduler", *of_others) as others:
        wait_until(lambda: len(ledger.starts("light")) >= SECONDS, what="the others run")
        assert ledger.starts("heavy") == []
        answer = manage(ledger, "scheduler_health")
        assert answer.returncode == 1
        assert "no live process takes the group heavy" in answer.stdout + answer.stderr
        with run_scheduler(ledger, "manage.py", "run_scheduler", *of_heavy) as heavy:
            wait_until(lambda: len(ledger.starts("heavy")) >= SECONDS, what="heavy runs")
            answer = manage(ledger, "scheduler_health")
            assert "no live process takes" not in answer.stdout + answer.stderr
            assert {line.pid for line in ledger.starts("heavy")} == {heavy.pid}
            os.kill(heavy.pid, signal.SIGKILL)
        before = len(ledger.starts("light"))
        wait_until(lambda: len(ledger.starts("light")) >= before + 2, what="the others go on")
        assert others.stop() == 0
    assert {line.pid for line in ledger.starts("light") + ledger.starts("free")} == {others.pid}
    ledger.check_once()
    ledger.check_one_at_a_time(killed={heavy.pid})
