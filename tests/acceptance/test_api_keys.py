"""Requests with an Idempotency-Key over real HTTP, while the first of them is held open in one of several processes."""

import json
import threading
import urllib.error
import urllib.request
from typing import Any

import pytest

from .ledger import manage, serve
from .servers import ServerProcess, wait_until
from .test_ledger_serving import LedgerOf

pytest.importorskip("ninja", reason="django-ninja (extra [api]) is not installed")

pytestmark = pytest.mark.acceptance


class Answer:
    """What came back of `POST /schedule/asked/run` with one key."""

    def __init__(self, server: ServerProcess, secret: str, body: Any) -> None:
        headers = {"Authorization": f"Bearer {secret}", "Idempotency-Key": "K", "Content-Type": "application/json"}
        address, data = f"{server.url}/api/schedule/asked/run", json.dumps(body).encode()
        try:
            response: Any = urllib.request.urlopen(urllib.request.Request(address, data, headers), timeout=60)
        except urllib.error.HTTPError as error:
            response = error
        with response:
            self.status, self.headers, self.data = response.status, response.headers, json.load(response)


def test_while_the_first_is_held_open_the_others_are_told_at_once_AP3(ledger_of: LedgerOf) -> None:
    ledger = ledger_of({"asked": {"schedule": "manual", "gate": "held"}})
    ledger.env["LEDGER_API"] = "1"
    done = manage(ledger, "scheduler_token", "create", "caller", "--write")
    assert done.returncode == 0, done.stderr
    secret, held, first = done.stdout.strip(), ledger.folder / "held", list[Answer]()
    with serve(ledger, "gunicorn", "--threads", "4", workers=2) as server:
        held.touch()
        caller = threading.Thread(target=lambda: first.append(Answer(server, secret, {})))
        caller.start()
        try:
            wait_until(lambda: (ledger.folder / "asked").exists(), what="the gate is asked")
            for _ in range(8):  # each of the processes answers some of them
                other = Answer(server, secret, {"kwargs": {}})
                assert (other.status, other.data["code"]) == (422, "idempotency_key_reused")
                same = Answer(server, secret, {})
                assert (same.status, same.data["code"], same.headers["Retry-After"]) == (409, "in_progress", "1")
            assert (caller.is_alive(), ledger.rows()) == (True, [])
        finally:
            held.unlink()
            caller.join()
        again = Answer(server, secret, {})
        assert [first[0].status, again.status, Answer(server, secret, {"kwargs": {}}).status] == [202, 202, 422]
        assert first[0].headers["Location"] == again.headers["Location"]
        assert first[0].data["run_id"] == again.data["run_id"]
        wait_until(lambda: [row.status for row in ledger.rows()] == ["succeeded"], what="the run")
