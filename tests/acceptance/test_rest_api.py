"""The walk through the REST API, as its page writes it, against a server of the demo."""

import json
import re
import shutil
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

pytest.importorskip("ninja", reason="django-ninja (extra [api]) is not installed")

from tests.acceptance.servers import ROOT, ServerProcess, environment, start_server, wait_until
from tests.acceptance.test_demo import SETTINGS, Demo, having_run
from tests.docs.pages import blocks

pytestmark = [
    pytest.mark.acceptance,
    pytest.mark.skipif(not shutil.which("curl"), reason="curl is not installed"),
]
WALK = ROOT / "docs/how-to/rest-api.md"
ADDRESS = "http://127.0.0.1:8000"
EXPECTED = re.compile(r"^(.*?)\s{2,}# (.+)$")
MARK = "=== next ==="


@pytest.fixture
def demo(tmp_path: Path) -> Demo:
    demo = Demo(tmp_path)
    demo.manage("migrate", "-v", "0")
    return demo


@pytest.fixture
def server(demo: Demo) -> Iterator[ServerProcess]:
    with start_server("gunicorn", ROOT, SETTINGS, "--threads", "4", env=demo.env, workers=2) as server:
        wait_until(having_run(demo, "heartbeat", 2), what="two heartbeats")
        yield server


ROUNDS, CALLERS = 6, 12


def test_of_equal_requests_over_several_processes_one_makes_a_run(demo: Demo) -> None:
    token = demo.manage("scheduler_token", "create", "many", "--write").split()[0]
    with start_server("gunicorn", ROOT, SETTINGS, "--threads", "4", env=demo.env, workers=4) as server:
        for number in range(ROUNDS):
            with ThreadPoolExecutor(CALLERS) as pool:
                answers = list(pool.map(lambda _, n=number: post_run(server, token, f"K{n}"), range(CALLERS)))
            assert {status for status, _ in answers} <= {202, 409}
            assert len({run for status, run in answers if status == 202}) == 1
            wait_until(having_run(demo, "cleanup_old_events", number + 1), what="the run")
        assert "IntegrityError" not in server.output()
    assert len(demo.rows("cleanup_old_events")) == ROUNDS


def post_run(server: ServerProcess, token: str, key: str) -> tuple[int, int | None]:
    """Ask for a run; return the status, and the run."""
    headers = {"Authorization": f"Bearer {token}", "Idempotency-Key": key}
    address = f"{server.url}/api/scheduler/schedule/cleanup_old_events/run"
    request = urllib.request.Request(address, method="POST", headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=60) as response:
            return response.status, json.load(response)["run_id"]
    except urllib.error.HTTPError as error:
        return error.code, None


def told() -> tuple[str, list[str]]:
    """Return the walk as one script that marks the end of each line, and what each line must print."""
    lines = [line for code in blocks(WALK, "sh") for line in code.splitlines()]
    parts = [found.groups() if (found := EXPECTED.match(line)) else (line, "") for line in lines]
    script = "\n".join(f"{command}\necho; echo '{MARK}'" for command, _ in parts)
    return f"set -o pipefail\n{script}\n", [expected for _, expected in parts]


def walked(server: ServerProcess, demo: Demo, folder: Path) -> list[str]:
    """Walk, with this Python and this server in place of those of the page; return what each line printed."""
    (folder / "python").write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    (folder / "python").chmod(0o755)
    script, _ = told()
    env = environment(ROOT, SETTINGS, demo.env)
    env["PATH"] = f"{folder}:{env['PATH']}"
    done = subprocess.run(
        ["bash", "-c", script.replace(ADDRESS, server.url)],
        cwd=ROOT, env=env, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert "curl:" not in done.stderr, done.stderr
    return [part.strip() for part in done.stdout.split(MARK)[:-1]]


def test_the_walk_goes_as_the_page_says(server: ServerProcess, demo: Demo, tmp_path: Path) -> None:
    script, expected = told()
    found = walked(server, demo, tmp_path)
    assert len(found) == len(expected)
    commands = [command.splitlines()[0] for command in script.split(MARK + "'\n") if command.strip()]
    for command, said, printed in zip(commands, expected, found, strict=False):
        assert said in printed, f"{command}\n{printed}"
        assert '"status": 5' not in printed
    assert any("location: /api/scheduler/runs/" in printed.lower() for printed in found)
    assert demo.rows("brew") == []
    (run,) = {part for printed in found if (part := "".join(re.findall(r'^\{"run_id": (\d+), "status": "', printed)))}
    assert run
