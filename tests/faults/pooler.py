"""PgBouncer before the PostgreSQL server, in transaction mode: the session may be another one after each COMMIT."""

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.faults.servers import free_port
from tests.faults.timing import wait_for

INI = """[databases]
* = host=127.0.0.1 port={server}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = trust
auth_file = {folder}/users
pool_mode = transaction
default_pool_size = {sessions}
max_client_conn = 200
logfile = {folder}/log
"""


def program() -> str | None:
    """Return where PgBouncer is; None where it is not installed."""
    return shutil.which("pgbouncer", path=f"{os.environ['PATH']}:/usr/sbin")


@contextmanager
def pooler(server: int, sessions: int) -> Iterator[int]:
    """Run PgBouncer with so many sessions for each database; yields the port it listens on."""
    with tempfile.TemporaryDirectory(prefix="pooler-") as name:
        folder, port = Path(name), free_port()
        text = INI.format(server=server, port=port, sessions=sessions, folder=folder)
        (folder / "users").write_text('"postgres" ""\n')
        (folder / "ini").write_text(text)
        command = [str(program()), str(folder / "ini")]
        if os.geteuid() == 0:  # it refuses to run as root
            shutil.chown(folder, "nobody")
            command[1:1] = ["-u", "nobody"]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            assert wait_for(lambda: _answers(port), 10), (folder / "log").read_text()
            yield port
        finally:
            process.kill()
            process.wait(10)


def _answers(port: int) -> bool:
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False
