"""Brokers and Celery workers of a test's own."""

import json
import os
import shutil
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

celery = pytest.importorskip("celery", reason="Celery is not installed")
from celery import Celery  # noqa: E402

from scheduler.contrib.celery.project import TASK  # noqa: E402

from .ledger import PROJECT, SETTINGS, Ledger  # noqa: E402
from .servers import ServerProcess, environment, free_port, kill_group, wait_until  # noqa: E402

WITHOUT = ("--without-gossip", "--without-mingle", "--without-heartbeat")


class Redis:
    """A redis-server of the test's own, which it may stop and start again."""

    kind = "redis"

    def __init__(self, folder: Path) -> None:
        self.folder, self.port = folder, free_port()
        self.url = f"redis://127.0.0.1:{self.port}/0"
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        command = ["redis-server", "--port", str(self.port), "--save", "", "--appendonly", "yes", "--bind", "127.0.0.1"]
        self.process = subprocess.Popen(
            command, cwd=self.folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
        )
        wait_until(lambda: self.call("PING") == "PONG", what="redis answers")

    def stop(self) -> None:
        if self.process is not None:
            kill_group(self.process)

    def call(self, *words: str) -> str:
        done = subprocess.run(
            ["redis-cli", "-p", str(self.port), *words], capture_output=True, text=True, timeout=10, check=False
        )
        return done.stdout.strip()

    def purge(self) -> None:
        self.call("FLUSHALL")

    def waiting(self) -> int:
        """Return how many messages are there, those included that wait to be acknowledged."""
        return int(self.call("LLEN", "celery")) + int(self.call("HLEN", "unacked"))


class Rabbit:
    """A virtual host of the RabbitMQ that runs here."""

    kind = "rabbit"

    def __init__(self, folder: Path) -> None:
        self.vhost = f"scheduler-{uuid.uuid4().hex[:12]}"
        self.url = f"amqp://guest:guest@127.0.0.1:5672/{self.vhost}"

    def start(self) -> None:
        rabbitmqctl("add_vhost", self.vhost)
        rabbitmqctl("set_permissions", "-p", self.vhost, "guest", ".*", ".*", ".*")

    def stop(self) -> None:
        rabbitmqctl("delete_vhost", self.vhost)

    def purge(self) -> None:
        rabbitmqctl("purge_queue", "-p", self.vhost, "celery")

    def waiting(self) -> int:
        return sum(int(number) for number in rabbitmqctl("-q", "list_queues", "-p", self.vhost, "messages").split())

    def connections(self) -> int:
        listed = subprocess.run(
            ["rabbitmqctl", "-q", "list_connections", "vhost"], capture_output=True, text=True, timeout=240, check=True
        )
        return listed.stdout.split().count(self.vhost)


class OwnRabbit:
    """A RabbitMQ of the test's own, which it may stop and start again, without plugins and on ports of its own."""

    kind = "own rabbit"

    def __init__(self, folder: Path) -> None:
        self.port, self.names_port, folder = free_port(), free_port(), folder / "rabbit"
        self.url, self.log = f"amqp://guest:guest@127.0.0.1:{self.port}//", folder / "output.txt"
        folder.mkdir()
        (folder / "plugins").write_text("[].")
        self.environ = os.environ | {
            "HOME": str(folder),
            "ERL_EPMD_PORT": str(self.names_port),
            "RABBITMQ_NODENAME": f"own{self.port}@localhost",
            "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
            "RABBITMQ_NODE_PORT": str(self.port),
            "RABBITMQ_DIST_PORT": str(free_port()),
            "RABBITMQ_MNESIA_BASE": str(folder / "data"),
            "RABBITMQ_LOG_BASE": str(folder),
            "RABBITMQ_PID_FILE": str(folder / "pid"),
            "RABBITMQ_CONFIG_FILE": str(folder / "none"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(folder / "plugins"),
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "-setcookie own +S 1:1 +sbwt none",
        }
        self.process: subprocess.Popen[bytes] | None = None

    @staticmethod
    def program() -> str | None:
        """Return what starts it; the script in PATH may become another user, who may not write here."""
        return shutil.which("rabbitmq-server", path="/usr/lib/rabbitmq/bin") or shutil.which("rabbitmq-server")

    def start(self) -> None:
        with self.log.open("wb") as output:
            self.process = subprocess.Popen(
                [str(self.program())], env=self.environ, stdin=subprocess.DEVNULL, stdout=output, stderr=output,
                cwd=self.log.parent, start_new_session=True,
            )  # fmt: skip
        wait_until(lambda: "completed with" in self.log.read_text(errors="replace"), 240, "RabbitMQ is up")

    def stop(self) -> None:
        if self.process is not None:
            kill_group(self.process)
            wait_until(self._names_are_served_no_more, what="its server of names ends, which is a daemon")

    def _names_are_served_no_more(self) -> bool:
        """End it; it refuses that until it has seen that the node is gone."""
        command = ["epmd", "-port", str(self.names_port), "-kill"]
        said = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
        return "Cannot connect" in said.stdout + said.stderr

    def purge(self) -> None:
        self._asked(lambda channel: channel.queue_purge("celery"))

    def waiting(self) -> int:
        return int(self._asked(lambda channel: channel.queue_declare("celery", passive=True).message_count))

    def _asked(self, question: Callable[[Any], Any]) -> Any:
        with Celery("test", broker=self.url, set_as_current=False) as app, app.connection_for_read() as connection:
            return question(connection.default_channel)


def rabbitmqctl(*words: str) -> str:
    done = subprocess.run(["rabbitmqctl", *words], capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr
    return "\n".join(line for line in done.stdout.splitlines() if line.strip().isdigit())


@contextmanager
def broker_of(kind: str, folder: Path, known: Any = None) -> Iterator[Any]:
    """Have a broker until the block ends, a new one or a `known` one; skip where there is none."""
    program, make = {
        "redis": (shutil.which("redis-server"), Redis),
        "rabbit": (shutil.which("rabbitmqctl"), Rabbit),
        "own rabbit": (OwnRabbit.program(), OwnRabbit),
    }[kind]
    if program is None:
        pytest.skip(f"the programs of {kind} are not installed")
    broker = known or make(folder)
    if kind == "rabbit" and subprocess.run(["rabbitmqctl", "-q", "list_vhosts"], capture_output=True).returncode:
        pytest.skip("rabbitmqctl reaches no RabbitMQ")
    broker.start()
    try:
        yield broker
    finally:
        broker.stop()


def connect(ledger: Ledger, broker: Any, *, twice: bool = False, **settings: Any) -> None:
    """Have processes of the project that start from now on use a broker, with settings of Celery."""
    ledger.env |= {"LEDGER_BROKER": broker.url, "LEDGER_CELERY": json.dumps(settings)}
    ledger.env |= {"LEDGER_TWICE": "1"} if twice else {}


def publish(ledger: Ledger, *ids: Any) -> None:
    """Publish messages for the generic task."""
    with Celery("test", broker=ledger.env["LEDGER_BROKER"], set_as_current=False) as app:
        for one in ids:
            app.send_task(TASK, args=[one], ignore_result=True)


@contextmanager
def worker(
    ledger: Ledger,
    *,
    pool: str = "prefork",
    size: int = 2,
    ready: bool = True,
    app: str = "ledger.celery_app",
    project: tuple[Path, str] = (PROJECT, SETTINGS),
) -> Iterator[ServerProcess]:
    """Run a Celery worker until the block ends."""
    place, settings = project
    log = ledger.folder / f"worker-{uuid.uuid4().hex[:6]}.txt"
    name = f"{log.stem}@localhost"
    command = [sys.executable, "-m", "celery", "-A", app, "worker", "-l", "INFO", "-n", name]
    command += ["--pool", pool, "-c", str(size), *WITHOUT]
    environ = environment(place, settings, ledger.env) | {"C_FORCE_ROOT": "1"}
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, cwd=place, env=environ, stdout=output, stderr=output, start_new_session=True
        )
    one = ServerProcess("celery", process, 0, log, environ)
    try:
        if ready:
            wait_until(lambda: " ready." in one.output() or process.poll() is not None, 180, "the worker is ready")
            assert process.poll() is None, "the worker ended"
        yield one
    except BaseException:
        print(f"--- {name}\n{one.output()[-6000:]}\n---")
        raise
    finally:
        kill_group(process)


class Workers:
    """Workers that are started again when they end, as a process manager does it.

    A worker whose broker goes away may end by itself: kombu reads the address of a connection that is closed.
    """

    def __init__(self, ledger: Ledger, stack: ExitStack, pools: tuple[str, ...]) -> None:
        self.ledger, self.stack = ledger, stack
        self.living = [self._start(pool) for pool in pools]

    def _start(self, pool: str = "prefork") -> ServerProcess:
        return self.stack.enter_context(worker(self.ledger, pool=pool, ready=False))

    def kill(self) -> None:
        """Kill the oldest; it is replaced as any that ended."""
        kill_group(self.living[0].process)
        self._replace()

    def _replace(self) -> None:
        for one in [one for one in self.living if one.process.poll() is not None]:
            self.living.remove(one)
            self.living.append(self._start())

    def wait(self, condition: Callable[[], Any], what: str, seconds: float = 60) -> None:
        """Wait until something is true while all workers are kept running; AssertionError after `seconds`."""

        def true_while_all_run() -> Any:
            self._replace()
            return condition()

        wait_until(true_while_all_run, seconds, what)
