"""Start real server processes for a test, and leave none behind.

    with start_server("gunicorn", project_dir, "project.settings", workers=2) as server:
        server.get("/")
        pids = pids_of_workers(server)

The project is expected to have `manage.py` and, beside it, `<package>.wsgi` and `<package>.asgi`, where the package is
the first part of the settings module. Linux only: children are read from /proc.
"""

import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")

ROOT = Path(__file__).resolve().parents[2]
START_SECONDS = 30.0
STOP_SECONDS = 10.0


def wait_until(condition: Callable[[], T], seconds: float = START_SECONDS, what: str = "") -> T:
    """Return the first true value of `condition`; AssertionError after `seconds`."""
    end = time.monotonic() + seconds  # noqa: TID251
    while not (value := condition()):
        if time.monotonic() > end:  # noqa: TID251
            raise AssertionError(f"not within {seconds} s: {what or condition}")
        time.sleep(0.05)  # noqa: TID251
    return value


@dataclass
class ServerProcess:
    """A running server: its first process, where it answers, what it printed."""

    kind: str
    process: "subprocess.Popen[bytes]"
    port: int
    log: Path
    environ: Mapping[str, str] = field(repr=False)

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def get(self, path: str = "/", timeout: float = 10.0) -> str:
        """Return the body of a page."""
        with urllib.request.urlopen(self.url + path, timeout=timeout) as response:
            return str(response.read().decode())

    def output(self) -> str:
        """Return all that the server has printed so far."""
        return self.log.read_text(errors="replace")

    def answers(self) -> bool:
        """Whether the port takes connections; AssertionError when the server has ended."""
        if self.process.poll() is not None:
            raise AssertionError(f"{self.kind} ended with {self.process.returncode}")
        with suppress(OSError), socket.create_connection(("127.0.0.1", self.port), timeout=1):
            return True
        return False

    def stop(self, number: int = signal.SIGTERM, seconds: float = STOP_SECONDS) -> int:
        """Send the signal to the first process and return its exit code."""
        self.process.send_signal(number)
        return self.process.wait(seconds)


def free_port() -> int:
    """Return a port that nobody listens on."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def command_of(kind: str, package: str, port: int, workers: int, python: str = sys.executable) -> list[str]:
    """Return the command line of a server: a console script beside `python`, or a `python -m` form."""
    address, scripts = f"127.0.0.1:{port}", Path(python).parent
    wsgi, asgi = f"{package}.wsgi:application", f"{package}.asgi:application"
    gunicorn = ["-w", str(workers), "-b", address, wsgi]
    uvicorn = ["--port", str(port), *(["--workers", str(workers)] if workers > 1 else []), asgi]
    table: dict[str, list[str | Path]] = {
        "runserver": [python, "manage.py", "runserver", address],
        "django-admin": [scripts / "django-admin", "runserver", "--noreload", address],
        "python -m django": [python, "-m", "django", "runserver", "--noreload", address],
        "gunicorn": [scripts / "gunicorn", *gunicorn],
        "python -m gunicorn": [python, "-m", "gunicorn", *gunicorn],
        "uvicorn": [scripts / "uvicorn", *uvicorn],
        "python -m uvicorn": [python, "-m", "uvicorn", *uvicorn],
        "script": [python, "serve.py", str(port), str(workers)],
        "daphne": [scripts / "daphne", "-p", str(port), asgi],
        "hypercorn": [scripts / "hypercorn", "-b", address, "-w", str(workers), asgi],
        "granian": [scripts / "granian", "--port", str(port), "--workers", str(workers), "--interface", "asgi", asgi],
        "waitress": [scripts / "waitress-serve", f"--listen={address}", wsgi],
        "uwsgi": [scripts / "uwsgi", "--http-socket", address, "--module", wsgi, "--processes", str(workers)],
    }
    return [str(part) for part in table[kind]]


def environment(project_dir: Path, settings: str, env: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the environment for a process of the project."""
    path = os.pathsep.join([str(project_dir), str(ROOT)])
    added = {"DJANGO_SETTINGS_MODULE": settings, "PYTHONPATH": path, "PYTHONUNBUFFERED": "1"}
    return {**os.environ, **added, **(env or {})}


@contextmanager
def start_server(
    kind: str,
    project_dir: Path,
    settings: str,
    *args: str,
    env: Mapping[str, str] | None = None,
    workers: int = 1,
    python: str = sys.executable,
) -> Iterator[ServerProcess]:
    """Run a server until the block ends; it answers when the block begins.

    `kind` is a key of the table in `command_of`; `args` are appended. All that it printed is shown when the block
    fails, and its whole process group is killed at the end.
    """
    port, environ = free_port(), environment(project_dir, settings, env)
    command = [*command_of(kind, settings.partition(".")[0], port, workers, python), *args]
    with tempfile.TemporaryDirectory(prefix="server-") as folder:
        log = Path(folder) / "output.txt"
        with log.open("wb") as output:
            process = subprocess.Popen(
                command, cwd=project_dir, env=environ, stdout=output, stderr=output, start_new_session=True
            )
        server = ServerProcess(kind, process, port, log, environ)
        try:
            wait_until(server.answers, what=f"{kind} answers")
            yield server
        except BaseException:
            print(f"--- {' '.join(command)}\n{server.output()}\n---")
            raise
        finally:
            kill_group(process)


def kill_group(process: "subprocess.Popen[bytes]") -> None:
    """Kill a process that leads its own group, with all that it started."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait(STOP_SECONDS)


def children_of(pid: int) -> list[int]:
    """Return the pids of the children of a process, from /proc; empty when it is gone."""
    with suppress(OSError):
        tasks = Path(f"/proc/{pid}/task").iterdir()
        return sorted(int(child) for task in tasks for child in (task / "children").read_text().split())
    return []


def pids_of_workers(server: ServerProcess) -> list[int]:
    """Return the processes that serve: the children of the first one, or that one when it has none."""
    helpers = ("resource_tracker", "forkserver import")
    workers = [pid for pid in children_of(server.pid) if not any(word in command_line_of(pid) for word in helpers)]
    return workers or [server.pid]


def command_line_of(pid: int) -> str:
    """Return the command line of a process; empty when it is gone."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    return ""
