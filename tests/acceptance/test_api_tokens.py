"""Tokens over real HTTP: their use is written in passing, nobody waits for it, and the secret stays with the caller."""

import json
import sqlite3
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from .ledger import Ledger, manage, noise, serve
from .servers import ServerProcess, wait_until
from .test_ledger_serving import LedgerOf

pytest.importorskip("ninja", reason="django-ninja (extra [api]) is not installed")

pytestmark = pytest.mark.acceptance

CALLS, CALLERS = 300, 16
BURST: dict[str, dict[str, Any]] = {f"job{number}": {"schedule": "every 1s"} for number in range(20)}


@pytest.fixture
def ledger(ledger_of: LedgerOf) -> Ledger:
    ledger = ledger_of(BURST)
    ledger.env["LEDGER_API"] = "1"
    (ledger.folder / "trace.jsonl").touch()
    return ledger


@pytest.fixture
def secret(ledger: Ledger) -> str:
    done = manage(ledger, "scheduler_token", "create", "monitor")
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.fixture
def server(ledger: Ledger, secret: str) -> Iterator[ServerProcess]:
    with serve(ledger, "gunicorn", "--threads", "8", workers=2) as server:
        wait_until(lambda: ledger.starts(), what="a run")
        yield server


def status_of(server: ServerProcess, path: str, secret: str) -> int:
    request = urllib.request.Request(f"{server.url}/api{path}", headers={"Authorization": f"Bearer {secret}"})
    try:
        with urllib.request.urlopen(request, timeout=30) as response:
            return int(response.status)
    except urllib.error.HTTPError as error:
        return error.code


def is_used(server: ServerProcess, ledger: Ledger, secret: str) -> bool:
    """Call, and look whether one of the calls has been noted: one that met a writer notes nothing."""
    status_of(server, "/schedule", secret)
    return bool(ledger.query("SELECT last_used_at FROM scheduler_apitoken")[0][0])


def uses_tried(ledger: Ledger) -> int:
    lines = [json.loads(line) for line in (ledger.folder / "trace.jsonl").read_text().splitlines()]
    updates = [line["sql"] for line in lines if line["event"] == "query" and line["sql"].startswith("UPDATE")]
    return sum('"scheduler_apitoken"' in sql for sql in updates)


WRITTEN = """
CREATE TABLE uses (at); CREATE TRIGGER note_use AFTER UPDATE ON scheduler_apitoken
BEGIN INSERT INTO uses VALUES (new.last_used_at); END;
"""


def test_many_calls_in_a_burst_of_runs_write_it_a_few_times(ledger: Ledger, secret: str, server: ServerProcess) -> None:
    """AP10."""
    with closing(sqlite3.connect(ledger.database, timeout=20)) as other:
        other.executescript(WRITTEN)
    began = time.monotonic()  # noqa: TID251
    with ThreadPoolExecutor(CALLERS) as callers:
        answers = list(callers.map(lambda _: status_of(server, "/status", secret), range(CALLS)))
    assert answers == [200] * CALLS
    wait_until(lambda: is_used(server, ledger, secret), what="the last use")
    minutes = (time.monotonic() - began) / 60  # noqa: TID251
    assert 1 <= ledger.query("SELECT count(*) FROM uses")[0][0] <= 2 + minutes
    assert uses_tried(ledger) <= 20, "one that was refused is tried every five seconds"
    assert "locked" not in server.output()
    ledger.check_once()


def test_no_call_waits_while_another_process_writes(ledger: Ledger, secret: str, server: ServerProcess) -> None:
    """AP10, and a write that is not made refuses nothing: what is waited for is waited for in seconds."""
    with closing(sqlite3.connect(ledger.database, isolation_level=None, timeout=20)) as other:
        other.execute("BEGIN IMMEDIATE")
        found = [timed(server, path, secret) for _ in range(10) for path in ("/schedule", "/status")]
        other.execute("ROLLBACK")
    assert {status for status, _ in found} == {200}
    assert median(took for _, took in found) < 0.1 * noise()
    assert max(took for _, took in found) < 1.0 * noise()


def timed(server: ServerProcess, path: str, secret: str) -> tuple[int, float]:
    """Call; return the status, and the seconds until the answer."""
    began = time.monotonic()  # noqa: TID251
    return status_of(server, path, secret), time.monotonic() - began  # noqa: TID251


def test_a_secret_is_in_no_file(ledger: Ledger, secret: str, server: ServerProcess) -> None:
    """AP9: neither in the database nor in a log, also of calls that are refused; of what was wrong, neither."""
    wrong = secret[:-1] + ("a" if secret[-1] != "a" else "b")
    assert status_of(server, "/schedule", secret) == 200
    assert status_of(server, "/schedule/nobody", secret) == 404
    assert status_of(server, "/schedule", wrong) == 401
    server.stop()
    files = [path for path in ledger.folder.rglob("*") if path.is_file()] + [Path(server.log)]
    held = [path.name for path in files if secret.encode() in path.read_bytes() or wrong.encode() in path.read_bytes()]
    assert held == []
    (digest,) = ledger.query("SELECT digest FROM scheduler_apitoken")[0]
    assert len(digest) == 64
