"""Exactly the serving processes start the scheduler: real servers, real commands, real forks."""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from .servers import ServerProcess, environment, kill_group, pids_of_workers, start_server, wait_until

pytestmark = pytest.mark.acceptance
PROJECT = Path(__file__).parent / "startup_project"
SETTINGS = "probe.settings"
QUIET_SECONDS = 2.0  # longer than every delay of the start


class Journal:
    """What the processes of a test have written down."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "journal.jsonl"
        self.env = {"STARTUP_JOURNAL": str(self.path), "STARTUP_FOLDER": str(folder)}

    def lines(self, event: str) -> list[dict[str, Any]]:
        text = self.path.read_text() if self.path.exists() else ""
        return [line for line in map(json.loads, text.splitlines()) if line["event"] == event]

    def started(self) -> list[int]:
        return sorted(line["pid"] for line in self.lines("started"))


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    return Journal(tmp_path)


def nothing_more(changes: Callable[[], object]) -> None:
    """Watch for a while that the value stays what it is."""
    before = changes()
    with pytest.raises(AssertionError, match="not within"):
        wait_until(lambda: changes() != before, QUIET_SECONDS)


def all_workers_start(server: ServerProcess, journal: Journal, workers: int) -> list[int]:
    """Check that each worker starts once, and nothing else does."""
    wait_until(lambda: len(journal.started()) >= workers, what="each worker starts")
    nothing_more(journal.started)
    pids = pids_of_workers(server)
    assert journal.started() == pids
    assert len(pids) == workers
    return pids


@pytest.mark.parametrize(
    ("kind", "workers", "args"),
    [
        ("runserver", 1, []),
        ("runserver", 1, ["--noreload"]),
        ("django-admin", 1, []),
        ("python -m django", 1, []),
        ("gunicorn", 2, []),
        ("gunicorn", 2, ["--preload"]),
        ("python -m gunicorn", 2, []),
        ("python -m gunicorn", 2, ["--preload"]),
        ("gunicorn", 2, ["-k", "gthread", "--threads", "3"]),
        ("uvicorn", 1, []),
        ("uvicorn", 2, []),
        ("uvicorn", 1, ["--reload"]),
        ("python -m uvicorn", 2, []),
        ("script", 0, []),
        ("script", 2, []),
    ],
)
def test_each_serving_process_starts_and_no_other(kind: str, workers: int, args: list[str], journal: Journal) -> None:
    with start_server(kind, PROJECT, SETTINGS, *args, env=journal.env, workers=workers) as server:
        pids = all_workers_start(server, journal, max(workers, 1))
        assert int(server.get("/")) in pids
        if workers > 1:
            assert server.pid not in journal.started()


@pytest.mark.parametrize(
    ("kind", "args"),
    [
        ("daphne", []),
        ("hypercorn", []),
        ("hypercorn", ["--reload"]),
        ("granian", []),
        ("waitress", []),
        ("uwsgi", ["--master", "--die-on-term", "--enable-threads"]),
        ("uwsgi", ["--master", "--die-on-term", "--enable-threads", "--lazy-apps"]),
        ("uwsgi", ["--master", "--die-on-term", "--enable-threads", "--py-call-osafterfork"]),
        ("uwsgi", ["--master", "--die-on-term", "--enable-threads", "--py-call-uwsgi-fork-hooks"]),
    ],
)
def test_servers_outside_the_test_requirements(kind: str, args: list[str], journal: Journal) -> None:
    """Run where they are installed: STARTUP_TEST_PYTHON names the interpreter of an environment that has them."""
    python = os.environ.get("STARTUP_TEST_PYTHON", sys.executable)
    script = "waitress-serve" if kind == "waitress" else kind
    if not shutil.which(Path(python).parent / script):
        pytest.skip(f"{kind} is not installed")
    workers = 1 if kind in {"daphne", "waitress"} else 2
    with start_server(kind, PROJECT, SETTINGS, *args, env=journal.env, workers=workers, python=python) as server:
        wait_until(lambda: len(journal.started()) >= workers, what="each worker starts")
        nothing_more(journal.started)
        assert len(journal.started()) == workers
        assert int(server.get("/")) in journal.started()
        if workers > 1:
            assert server.pid not in journal.started()


def test_a_slow_application_under_gunicorn_preload_starts_in_its_workers_only(journal: Journal) -> None:
    env = {**journal.env, "STARTUP_SLOW_SECONDS": "1.5"}
    with start_server("gunicorn", PROJECT, SETTINGS, "--preload", env=env, workers=2) as server:
        all_workers_start(server, journal, 2)


def test_a_slow_application_under_an_unknown_forking_server_starts_in_its_workers_only(journal: Journal) -> None:
    env = {**journal.env, "STARTUP_SLOW_SECONDS": "1.5"}
    with start_server("script", PROJECT, SETTINGS, env=env, workers=2) as server:
        all_workers_start(server, journal, 2)


@pytest.mark.parametrize("args", [[], ["--preload"]])
def test_a_killed_gunicorn_worker_is_replaced_by_one_that_starts(args: list[str], journal: Journal) -> None:
    with start_server("gunicorn", PROJECT, SETTINGS, *args, env=journal.env, workers=2) as server:
        first, second = all_workers_start(server, journal, 2)
        os.kill(first, signal.SIGKILL)
        wait_until(lambda: len(journal.started()) == 3, what="the new worker starts")
        nothing_more(journal.started)
        assert set(journal.started()) == {first, *pids_of_workers(server)}
        assert second in pids_of_workers(server)


def test_a_recycled_gunicorn_worker_is_replaced_by_one_that_starts(journal: Journal) -> None:
    args = ["--preload", "--max-requests", "1"]
    with start_server("gunicorn", PROJECT, SETTINGS, *args, env=journal.env, workers=1) as server:
        wait_until(lambda: len(journal.started()) == 1)
        server.get("/")
        wait_until(lambda: len(journal.started()) == 2, what="the new worker starts")
        assert server.pid not in journal.started()


def test_a_reload_under_runserver_moves_the_start_to_the_new_child(journal: Journal, tmp_path: Path) -> None:
    project = tmp_path / "project"
    shutil.copytree(PROJECT, project, ignore=shutil.ignore_patterns("__pycache__"))
    with start_server("runserver", project, SETTINGS, env=journal.env) as server:
        wait_until(lambda: len(journal.started()) == 1)
        old = pids_of_workers(server)
        server.get("/")
        seen = (project / "probe" / "urls.py").stat().st_mtime

        def reloads() -> bool:
            """A change that comes before the reloader has looked for the first time is none to it: change it again."""
            nonlocal seen
            seen += 1
            os.utime(project / "probe" / "urls.py", (seen, seen))
            return not set(old) & set(pids_of_workers(server))

        wait_until(reloads, what="the old child goes")
        wait_until(lambda: set(journal.started()) == {*old, *pids_of_workers(server)}, what="the new child starts")


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
@pytest.mark.parametrize(("kind", "workers"), [("runserver", 1), ("gunicorn", 1), ("uvicorn", 2), ("script", 0)])
def test_a_helper_process_of_a_serving_one_never_starts(kind: str, workers: int, method: str, journal: Journal) -> None:
    with start_server(kind, PROJECT, SETTINGS, env=journal.env, workers=workers) as server:
        wait_until(lambda: len(journal.started()) == max(workers, 1))
        serving = journal.started()
        server.get(f"/helper/{method}/")
        nothing_more(journal.started)
        assert journal.started() == serving


def test_disabled_wins(journal: Journal) -> None:
    env = {**journal.env, "STARTUP_ENABLED": "0"}
    with start_server("gunicorn", PROJECT, SETTINGS, env=env, workers=2):
        wait_until(lambda: len(journal.lines("ready")) == 2)
        nothing_more(journal.started)
    assert {line["how"] for line in journal.lines("ready")} == {"disabled"}


@pytest.mark.parametrize(
    "command",
    [
        ["manage.py", "check"],
        ["manage.py", "migrate"],
        ["manage.py", "makemigrations", "--check"],
        ["manage.py", "collectstatic", "--noinput"],
        ["manage.py", "shell", "-c", "from threading import Event; import probe.wsgi; Event().wait(1.5)"],
        ["manage.py", "test"],
        ["manage.py", "import_things"],
        ["manage.py", "runserver", "--help"],
        ["-m", "django", "check"],
        ["-m", "pytest", "-p", "no:cacheprovider", "-c", os.devnull, "--confcutdir", ".", "check_application.py"],
        ["-m", "unittest", "probe.wsgi"],
        ["-c", "import django; django.setup(); from threading import Event; Event().wait(1.5)"],
        ["-m", "gunicorn", "--check-config", "probe.wsgi"],
    ],
    ids=lambda command: " ".join(command)[:40],
)
def test_no_command_starts_anything(command: list[str], journal: Journal, tmp_path: Path) -> None:
    env = environment(PROJECT, SETTINGS, {**journal.env, "PYTHONDONTWRITEBYTECODE": "1"})
    process = subprocess.Popen(
        [sys.executable, *command], cwd=PROJECT, env=env, text=False, start_new_session=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    try:
        output, _ = process.communicate(timeout=60)
    finally:
        kill_group(process)
    assert process.returncode in {0, 5}, output.decode()  # 5: a test runner that found no test
    assert journal.started() == []
    assert [line["threads"] for line in journal.lines("ready")] == [["MainThread"]]
