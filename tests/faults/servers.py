"""Private servers: installed in a folder of their own and thrown away, so that a round may kill and restart them."""

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tests.faults.timing import wait_for

UP_SECONDS = 30.0
"""A server that was killed reads its log again before it answers."""
POSTGRESQL = Path("/usr/lib/postgresql")
BY_ROOT: dict[str, Any] = {"user": "postgres", "group": "postgres", "extra_groups": []} if os.geteuid() == 0 else {}
"""PostgreSQL refuses to be run by root."""


class Server:
    """A server of one kind on a port of its own, its data in `folder`."""

    kill_with = signal.SIGKILL
    stop_with = signal.SIGTERM

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = free_port()
        self.switch = threading.Lock()
        """Held by whoever has stopped it and will start it again."""
        self._process: subprocess.Popen[bytes] | None = None

    def install(self) -> None:
        raise NotImplementedError

    def command(self) -> list[str]:
        raise NotImplementedError

    def start(self) -> None:
        """Start it, and wait until it listens; raises RuntimeError with what it printed when it does not."""
        log = self.folder / "server.log"
        with log.open("ab") as output:
            self._process = self._spawn(self.command(), output)
        if not wait_for(self._listens, UP_SECONDS, every=0.05):
            raise RuntimeError(f"the private server did not start:\n{log.read_text()[-2000:]}")

    def stop(self, *, hard: bool = False) -> None:
        """End it: cleanly, cutting every session, or as a crash would."""
        if self._process is not None:
            self._process.send_signal(self.kill_with if hard else self.stop_with)
            self._process.wait(60)

    def _spawn(self, command: list[str], output: Any) -> "subprocess.Popen[bytes]":
        return subprocess.Popen(command, cwd=self.folder, stdout=output, stderr=output)

    def _listens(self) -> bool:
        with closing(socket.socket()) as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0


class PostgresqlServer(Server):
    """A hard stop is `immediate`: no checkpoint, recovery at the next start. Unlike SIGKILL it ends its children."""

    kill_with = signal.SIGQUIT
    stop_with = signal.SIGINT

    @staticmethod
    def folder_of_binaries() -> Path | None:
        """Return where `initdb` and `postgres` of the newest version are, if they are installed."""
        found = [path.parent for path in POSTGRESQL.glob("*/bin/initdb") if (path.parent / "postgres").exists()]
        return max(found, key=lambda path: float(path.parent.name), default=None)

    def install(self) -> None:
        if BY_ROOT:
            shutil.chown(self.folder, "postgres")
        command = [
            str(self.folder_of_binaries() / "initdb"),
            "--auth=trust",
            "--username=postgres",
            "--no-sync",
            "--no-locale",
        ]
        subprocess.run(
            [*command, "--encoding=UTF8", "data"], cwd=self.folder, check=True, capture_output=True, timeout=120,
            **BY_ROOT,
        )  # fmt: skip

    def command(self) -> list[str]:
        binary = str(self.folder_of_binaries() / "postgres")
        places = ["-p", str(self.port), "-k", str(self.folder), "-c", "listen_addresses=127.0.0.1"]
        return [binary, "-D", "data", *places]

    def _spawn(self, command: list[str], output: Any) -> "subprocess.Popen[bytes]":
        return subprocess.Popen(command, cwd=self.folder, stdout=output, stderr=output, **BY_ROOT)


class MariadbServer(Server):
    def install(self) -> None:
        command = ["mariadb-install-db", "--no-defaults", f"--datadir={self.folder / 'data'}", "--skip-test-db"]
        subprocess.run(
            [*command, "--auth-root-authentication-method=normal", f"--user={_me()}"],
            cwd=self.folder, check=True, capture_output=True, timeout=120,
        )  # fmt: skip

    def command(self) -> list[str]:
        places = [f"--datadir={self.folder / 'data'}", f"--socket={self.folder / 'socket'}", f"--port={self.port}"]
        return [_mariadbd(), "--no-defaults", *places, "--bind-address=127.0.0.1", f"--user={_me()}"]


def can_be_private(kind: str) -> bool:
    """Return whether the programs for a private server of this kind are installed here, and its driver."""
    if kind == "postgresql":
        return find_spec("psycopg") is not None and PostgresqlServer.folder_of_binaries() is not None
    programs = _mariadbd() and shutil.which("mariadb-install-db")
    return kind == "mariadb" and find_spec("MySQLdb") is not None and bool(programs)


@contextmanager
def private_server(kind: str) -> Iterator[Server]:
    """A running server of this kind, which is thrown away at the end."""
    folder = Path(tempfile.mkdtemp(prefix="faults-server-"))
    server = {"postgresql": PostgresqlServer, "mariadb": MariadbServer}[kind](folder)
    try:
        server.install()
        server.start()
        yield server
    finally:
        server.stop(hard=True)
        shutil.rmtree(folder, ignore_errors=True)


def free_port() -> int:
    """Return a port of this machine on which nobody listens."""
    with closing(socket.create_server(("127.0.0.1", 0))) as one:
        return int(one.getsockname()[1])


def _mariadbd() -> str:
    return shutil.which("mariadbd", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin") or ""


def _me() -> str:
    import pwd

    return pwd.getpwuid(os.geteuid()).pw_name
