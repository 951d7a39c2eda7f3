"""Arming a start, and what forks make of it: real forks, in processes of their own."""

import logging
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from scheduler.runtime.startup import arm as startup
from scheduler.runtime.startup.detect import Frame, StartDecision
from scheduler.runtime.startup.forks import worker_fork
from scheduler.runtime.startup.inspect_process import frames_here, lives, loading_frame


@pytest.mark.parametrize(
    ("server", "caller", "worker"),
    [
        ("gunicorn", ("gunicorn.arbiter", "spawn_worker"), True),
        ("gunicorn", ("gunicorn.arbiter", "spawn_dirty_arbiter"), False),
        ("gunicorn", ("multiprocessing.popen_fork", "_launch"), False),
        ("gunicorn", ("subprocess", "_execute_child"), False),
        ("uwsgi", ("multiprocessing.popen_fork", "_launch"), False),
        ("", ("serve", "main"), True),
        ("", ("subprocess", "_execute_child"), False),
    ],
)
def test_a_fork_makes_a_worker_when_the_server_calls_for_it(server: str, caller: tuple[str, str], worker: bool) -> None:
    hook, wrapper = Frame("scheduler.runtime.startup.forks", "_before"), Frame("gevent.os", "fork")
    assert worker_fork(server, [hook, wrapper, Frame(*caller), Frame("gunicorn.arbiter", "spawn_worker")]) is worker


def test_arming_in_a_test_run_starts_nothing() -> None:
    startup.forks._gate = startup.forks.Gate()
    assert startup.arm(lambda: pytest.fail("started"), enabled=True).how == "tests"
    assert startup.decision() == startup.arm(lambda: pytest.fail("started"), enabled=False)
    startup.forks._gate = startup.forks.Gate()


def test_a_serving_process_that_cannot_run_threads_logs_one_error(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    fault = StartDecision(False, "uWSGI runs without threads", "wsgi", "uwsgi", fault=True)
    monkeypatch.setattr(startup, "decide_here", lambda *, enabled: fault)
    monkeypatch.setattr(startup.forks, "_gate", startup.forks.Gate())
    with caplog.at_level(logging.DEBUG, "scheduler"):
        startup.arm(lambda: pytest.fail("started"), enabled=True)
        startup.arm(lambda: pytest.fail("started"), enabled=True)
    assert [(record.levelname, record.getMessage()) for record in caplog.records] == [
        ("ERROR", "The scheduler does not run: uWSGI runs without threads")
    ]


def test_the_frame_that_loads_the_application_is_seen_while_it_lives() -> None:
    import threading

    source = "import threading\ndef setup(look): return look()\n"
    namespace: dict[str, Any] = {"__name__": "django"}
    exec(source, namespace)
    frame = namespace["setup"](lambda: loading_frame(frames_here()))
    assert frame is not None
    assert not lives(frame, threading.get_ident())
    assert namespace["setup"](lambda: lives(loading_frame(frames_here()), threading.get_ident()))  # type: ignore[arg-type]


SCRIPT = """
import os, select, sys, subprocess, time
from pathlib import Path
from scheduler.runtime.startup import arm as startup
from scheduler.runtime.startup.detect import Forks, StartDecision

journal = Path(sys.argv[1])
forks, server = Forks(sys.argv[2]), sys.argv[3]
startup.decide_here = lambda *, enabled: StartDecision(True, "test", "wsgi", server, forks)
noted, notes = os.pipe()  # a byte for each line, for whichever of these processes waits


def note(name):
    with journal.open("a") as file:
        file.write(name + "\\n")
    os.write(notes, b".")


def until(condition, seconds=10):
    end = time.monotonic() + seconds
    while not condition() and (left := end - time.monotonic()) > 0:
        if select.select([noted], [], [], min(left, 0.05))[0]:  # not every condition has a line of its own
            os.read(noted, 1)


def lines():
    return journal.read_text().split() if journal.exists() else []


def child(body):
    if (pid := os.fork()) == 0:
        try:
            body()
        finally:
            os._exit(0)
    os.waitpid(pid, 0)


names = {os.getpid(): "first"}
start = lambda: note(names.get(os.getpid(), "child"))
arm = lambda delay=0.3: startup.arm(start, enabled=True, delay=delay, fork_delay=delay)
"""

FORKS: dict[str, tuple[str, str, str, list[str]]] = {
    "a process that does not fork starts": (
        "perhaps",
        "",
        "arm(); until(lambda: lines())",
        ["first"],
    ),
    "a process that forks while it waits leaves it to the child": (
        "perhaps",
        "",
        "arm(); child(lambda: until(lambda: lines())); until(lambda: len(lines()) > 1, 1)",
        ["child"],
    ),
    "a master's later child starts, too": (
        "perhaps",
        "",
        "arm(); child(lambda: until(lambda: lines())); child(lambda: until(lambda: len(lines()) > 1))",
        ["child", "child"],
    ),
    "a child of a running process never starts": (
        "perhaps",
        "",
        "arm(0); until(lambda: lines()); child(lambda: until(lambda: len(lines()) > 1, 1))",
        ["first"],
    ),
    "a serving process that forks a helper while it waits starts, the helper does not": (
        "never",
        "uvicorn",
        "arm(); child(lambda: until(lambda: lines(), 1)); until(lambda: lines())",
        ["first"],
    ),
    "running another program while waiting does not make a master": (
        "perhaps",
        "",
        "arm(); subprocess.run(['true'], preexec_fn=lambda: None); until(lambda: lines())",
        ["first"],
    ),
    "a double fork to the background starts in the last process only": (
        "perhaps",
        "",
        "arm(); child(lambda: child(lambda: until(lambda: lines())))",
        ["child"],
    ),
    "a wrongly taken master starts at its first request": (
        "perhaps",
        "",
        "from django.core.signals import request_started\\n"
        "arm(); child(lambda: None); request_started.send(object); until(lambda: lines())",
        ["first"],
    ),
    "a running process does not start again at a request": (
        "perhaps",
        "",
        "from django.core.signals import request_started\\n"
        "arm(0); until(lambda: lines()); request_started.send(object); until(lambda: len(lines()) > 1, 1)",
        ["first"],
    ),
    "a claimed start calls the waiting one off": (
        "never",
        "",
        "arm(); assert startup.claim(); assert not startup.claim(); until(lambda: lines(), 1)\\n"
        "assert startup.decision().how == 'explicit'; startup.release(); assert startup.claim()",
        [],
    ),
    "a child of a process that claimed it may claim it for itself": (
        "never",
        "",
        "startup.claim()\\n"
        "child(lambda: note(startup.decision().how + str(startup.claim()) + str(startup.decision().start)))",
        ["childTrueTrue"],
    ),
    "a start that fails is told": (
        "never",
        "",
        "def start(): raise RuntimeError('no')\\n"
        "startup.arm(start, enabled=True, delay=0)\\n"
        "until(lambda: startup.decision().fault); note(startup.decision().reason.replace(' ', '_'))",
        ["the_start_failed:_no"],
    ),
    "a fork while the lock is held elsewhere leaves the child a free one": (
        "perhaps",
        "",
        "arm(5)\\ndef body(): startup.forks.here().changed.acquire(timeout=1) and note('free')\\nchild(body)",
        ["free"],
    ),
}


@pytest.mark.sweep(3)
@pytest.mark.parametrize("name", FORKS)
def test_fork(name: str, tmp_path: Path) -> None:
    forks, server, body, expected = FORKS[name]
    journal = tmp_path / "journal"
    program = SCRIPT + body.replace("\\n", "\n")
    root = Path(__file__).resolve().parents[3]
    result = subprocess.run(
        [sys.executable, "-c", program, str(journal), forks, server],
        cwd=root,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    assert (journal.read_text().split() if journal.exists() else []) == expected, result.stderr
