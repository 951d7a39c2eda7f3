"""A Redis of the tests' own, on a free port, which may be stopped, started and emptied without asking anybody."""

import shutil
import signal
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
import redis

from scheduler.clock import SYSTEM_CLOCK
from tests.acceptance.servers import free_port

PROGRAM = shutil.which("redis-server")
PATIENCE = 60.0


class RedisServer:
    """A server that remembers nothing over a restart, unless it is told to."""

    def __init__(self, folder: Path, *, remembers: bool = False) -> None:
        self._persistence = ["--save", "", "--appendonly", "yes" if remembers else "no", "--appendfsync", "always"]
        self.port = free_port()
        self.url = f"redis://127.0.0.1:{self.port}/0"
        self.client = redis.Redis(port=self.port, decode_responses=True)
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        command = [str(PROGRAM), "--port", str(self.port), "--bind", "127.0.0.1", *self._persistence]
        self._process = subprocess.Popen(command, cwd=self._folder, stdout=subprocess.DEVNULL)
        end, pause = SYSTEM_CLOCK.monotonic() + PATIENCE, threading.Event()
        while not self._answers():
            assert SYSTEM_CLOCK.monotonic() < end, "the Redis of the tests does not answer"
            pause.wait(0.02)

    def stop(self) -> None:
        """End it as a crash would."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self.client.connection_pool.disconnect()

    def freeze(self) -> None:
        """Let it take connections and answer nothing."""
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self._signal(signal.SIGCONT)

    def _signal(self, number: int) -> None:
        assert self._process is not None
        self._process.send_signal(number)

    def _answers(self) -> bool:
        with suppress(redis.ConnectionError):
            return bool(self.client.ping())
        return False


@pytest.fixture(scope="session")
def started_redis() -> Iterator[RedisServer]:
    """A server for the whole run."""
    if PROGRAM is None:
        pytest.skip("redis-server is not installed")
    with tempfile.TemporaryDirectory(prefix="redis-") as folder:
        server = RedisServer(Path(folder))
        server.start()
        yield server
        server.stop()
        server.client.close()


@pytest.fixture
def lasting_redis(tmp_path: Path) -> Iterator[RedisServer]:
    """A server that remembers all it has answered, also when it was killed."""
    if PROGRAM is None:
        pytest.skip("redis-server is not installed")
    server = RedisServer(tmp_path, remembers=True)
    server.start()
    yield server
    server.stop()


@pytest.fixture
def redis_server(started_redis: RedisServer) -> RedisServer:
    """The server, empty."""
    started_redis.client.flushall()
    return started_redis
