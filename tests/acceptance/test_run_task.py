"""`manage.py run_task` in a real process: what it prints, how it ends, and what Ctrl-C does to it."""

import json
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest

from .ledger import PROJECT, SETTINGS, Ledger, manage
from .servers import environment, wait_until

pytestmark = pytest.mark.acceptance

LedgerOf = Callable[[Mapping[str, Mapping[str, Any]]], Ledger]

TASKS = {
    "plain": {"schedule": "every 1h"},
    "patient": {"kind": "patient", "seconds": 60},
    "deaf": {"seconds": 60},
    "in_a_process": {"seconds": 60, "executor": "process", "timeout": 1},
}


@contextmanager
def running(ledger: Ledger, name: str) -> Iterator["subprocess.Popen[str]"]:
    """Run a task in the foreground of a process of its own, from the moment it has begun."""
    process = subprocess.Popen(
        [sys.executable, "manage.py", "run_task", name], cwd=PROJECT, env=environment(PROJECT, SETTINGS, ledger.env),
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        wait_until(lambda: ledger.starts(name), what="it begins")
        yield process
    finally:
        process.kill()
        process.communicate()


def test_a_run_that_succeeds_before_any_scheduler_ever_started(ledger_of: LedgerOf) -> None:
    ledger = ledger_of(TASKS)
    done = manage(ledger, "run_task", "plain", "--json")
    assert (done.returncode, json.loads(done.stdout)["result"]) == (0, "done")
    ledger.check_once()
    ledger.check_clean_stop()


def test_ctrl_c_stops_a_run_that_agrees(ledger_of: LedgerOf) -> None:
    ledger = ledger_of(TASKS)
    with running(ledger, "patient") as process:
        process.send_signal(signal.SIGINT)
        out, errors = process.communicate(timeout=20)
    assert process.returncode == 128 + signal.SIGINT
    assert "patient cancelled after" in errors
    assert "Traceback" not in errors + out
    ledger.check_clean_stop()


def test_a_second_ctrl_c_ends_it_at_once(ledger_of: LedgerOf) -> None:
    ledger = ledger_of(TASKS)
    with running(ledger, "deaf") as process:
        process.send_signal(signal.SIGINT)
        wait_until(lambda: sigint_is_left_to_the_system(process.pid), what="it has heard the first one")
        process.send_signal(signal.SIGINT)
        assert process.wait(10) == -signal.SIGINT


def sigint_is_left_to_the_system(pid: int) -> bool:
    """Whether the process has no handler of SIGINT, by the mask of those it catches."""
    with open(f"/proc/{pid}/status") as status:  # noqa: PTH123
        (caught,) = (line.split()[1] for line in status if line.startswith("SigCgt:"))
    return not int(caught, 16) >> (signal.SIGINT - 1) & 1


def test_the_timeout_of_a_task_in_a_process_of_its_own_is_kept(ledger_of: LedgerOf) -> None:
    ledger = ledger_of(TASKS)
    done = manage(ledger, "run_task", "in_a_process")
    assert done.returncode == 1
    assert "in_a_process timed out after" in done.stderr
    ledger.check_clean_stop()
