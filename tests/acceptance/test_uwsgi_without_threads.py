"""A3: a uWSGI that lets no threads run says so once, in the log, in health and in the checks, and starts nothing."""

import json
import subprocess
import sys
from collections.abc import Callable

import pytest

from .ledger import PROJECT, SETTINGS, Ledger
from .servers import environment

pytestmark = pytest.mark.acceptance

STUB = """
import json, sys, threading, types
uwsgi = types.ModuleType("uwsgi")
uwsgi.opt, uwsgi.worker_id = {option: True}, lambda: 1
sys.modules["uwsgi"] = uwsgi
from ledger.wsgi import application
from django.core.checks import run_checks
from scheduler.health import get_scheduler_status
from scheduler.clock import SYSTEM_CLOCK
end = SYSTEM_CLOCK.monotonic() + seconds
while not get_scheduler_status().to_dict()["here"]["runs"] and SYSTEM_CLOCK.monotonic() < end:
    threading.Event().wait(0.05)
print(json.dumps({
    "status": get_scheduler_status().to_dict(),
    "checks": [message.id for message in run_checks()],
    "threads": [one.name for one in threading.enumerate() if one.name.startswith("scheduler")],
}))
"""
FAULT = "uWSGI runs without threads: add enable-threads = true to its configuration"


def load_under_uwsgi(ledger: Ledger, option: str, seconds: int = 0) -> "subprocess.CompletedProcess[str]":
    """Load the application in a process in which a `uwsgi` stands, with one option; wait for its start."""
    code = STUB.replace("option", json.dumps(option), 1).replace("seconds", str(seconds), 1)
    env = environment(PROJECT, SETTINGS, ledger.env)
    return subprocess.run(
        [sys.executable, "-c", code], cwd=PROJECT, env=env, capture_output=True, text=True, timeout=60, check=False
    )


def test_without_threads_it_refuses_with_one_error_and_is_red_everywhere_A3(ledger_of: Callable[..., Ledger]) -> None:
    done = load_under_uwsgi(ledger_of({}), "master")
    seen = json.loads(done.stdout)
    errors = [line for line in done.stderr.splitlines() if " ERROR " in line]
    assert [line.partition(": ")[2] for line in errors] == [f"The scheduler does not run: {FAULT}"]
    assert (seen["status"]["status"], seen["status"]["here"]["runs"]) == ("degraded", False)
    assert [one["text"] for one in seen["status"]["problems"]] == [
        f"this process serves and cannot run the scheduler: {FAULT}"
    ]
    assert seen["checks"] == ["scheduler.E005"]
    assert seen["threads"] == []


@pytest.mark.parametrize("option", ["enable-threads", "threads"])
def test_with_threads_it_starts_A3(ledger_of: Callable[..., Ledger], option: str) -> None:
    done = load_under_uwsgi(ledger_of({}), option, seconds=30)
    seen = json.loads(done.stdout)
    assert seen["status"]["problems"] == []
    assert seen["checks"] == []
    assert seen["status"]["here"]["runs"] is True
    assert seen["threads"] != []
    assert " ERROR " not in done.stderr
