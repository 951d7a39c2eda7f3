"""Celery workers and connections to a database that they inherit, lose or outlive. What was seen elsewhere: Y8, Y9."""

import json
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from scheduler.schedules import Once
from tests.faults.servers import Server, can_be_private, private_server

from .celery_workers import Redis, broker_of, connect, worker
from .ledger import Ledger, manage, noise, now, run_scheduler
from .servers import wait_until

pytestmark = [pytest.mark.acceptance, pytest.mark.timeout(300)]
SPEAKS_OF_SHARING = ("SSL", "bad record mac", "protocol", "lost synchronization", "couldn't get a connection")


class OnAServer(Ledger):
    """A ledger in the database of a server of the test's own."""

    def __init__(self, folder: Path, server: Server, kind: str, **options: Any) -> None:
        super().__init__(folder)
        self.server, self.kind = server, kind
        user, name = {"postgresql": ("postgres", "postgres"), "mariadb": ("root", "ledger")}[kind]
        if kind == "mariadb":
            self.query(f"CREATE DATABASE {name} CHARACTER SET utf8mb4", database="")
        scheme = {"postgresql": "postgres", "mariadb": "mysql"}[kind]
        self.env["LEDGER_DATABASE_URL"] = f"{scheme}://{user}@127.0.0.1:{server.port}/{name}"
        self.env["LEDGER_DATABASE_OPTIONS"] = json.dumps(options)

    def query(self, sql: str, *parameters: Any, database: str = "ledger") -> list[tuple[Any, ...]]:
        with closing(self._connect(database)) as connection, closing(connection.cursor()) as cursor:
            cursor.execute(sql.replace("?", "%s"), parameters)
            return list(cursor.fetchall()) if cursor.description else []

    def _connect(self, database: str) -> Any:
        if self.kind == "postgresql":
            import psycopg

            return psycopg.connect(host="127.0.0.1", port=self.server.port, user="postgres", autocommit=True)
        import MySQLdb

        return MySQLdb.connect(host="127.0.0.1", port=self.server.port, user="root", database=database, autocommit=True)

    def migrated(self, tasks: Mapping[str, Mapping[str, Any]]) -> "OnAServer":
        self.give(tasks)
        done = manage(self, "migrate")
        assert done.returncode == 0, done.stderr
        return self

    def sessions(self) -> int:
        """Return how many sessions others have."""
        return int(self.query("SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'")[0][0]) - 1

    def encrypted_sessions(self) -> int:
        """Return how many sessions of others are encrypted."""
        (row,) = self.query("SELECT count(*) FROM pg_stat_ssl WHERE ssl AND pid <> pg_backend_pid()")
        return int(row[0])


@pytest.fixture
def redis(tmp_path: Path) -> Iterator[Redis]:
    with broker_of("redis", tmp_path) as one:
        yield one


def own_server(kind: str) -> Iterator[Server]:
    if not can_be_private(kind):
        pytest.skip(f"the programs of a {kind} server or its driver are not installed")
    with private_server(kind) as server:
        yield server


@pytest.fixture
def postgresql() -> Iterator[Server]:
    yield from own_server("postgresql")


@pytest.fixture
def mariadb() -> Iterator[Server]:
    yield from own_server("mariadb")


def handed(schedule: str, **options: Any) -> dict[str, Any]:
    return {"schedule": schedule, "executor": "celery", "handover_timeout": "30s", **options}


def at_once(seconds: float = 3.0) -> str:
    return Once(now() + timedelta(seconds=seconds)).to_text()


def encrypted(server: Server) -> None:
    """Have a PostgreSQL server speak TLS with a certificate that it has made itself, and refuse what does not."""
    data = server.folder / "data"
    key, certificate = data / "server.key", data / "server.crt"
    command = ["openssl", "req", "-new", "-x509", "-days", "2", "-nodes", "-text", "-subj", "/CN=localhost"]
    subprocess.run([*command, "-keyout", key, "-out", certificate], check=True, capture_output=True, timeout=60)
    key.chmod(0o600)
    for one in (key, certificate):
        shutil.chown(one, data.owner(), data.group())
    with (data / "postgresql.conf").open("a") as settings:
        settings.write("ssl = on\n")
    (data / "pg_hba.conf").write_text("hostssl all all 127.0.0.1/32 trust\n")
    server.stop()
    server.start()


TLS = {"sslmode": "require"}
POOL = {"pool": {"min_size": 1, "max_size": 4}}


@pytest.mark.postgresql
@pytest.mark.parametrize("options", [POOL, TLS], ids=["pool", "TLS"])
def test_children_of_a_worker_share_no_connection_with_their_parent_Y8(
    tmp_path: Path, redis: Redis, postgresql: Server, options: dict[str, Any]
) -> None:
    """The parent has used the database before it forks: by a pool of connections, or by a session that is encrypted."""
    if options == TLS:
        if shutil.which("openssl") is None:
            pytest.skip("openssl, which makes the certificate, is not installed")
        encrypted(postgresql)
    ledger = OnAServer(tmp_path, postgresql, "postgresql", **options)
    ledger.env["LEDGER_PARENT_QUERIES"] = "1"
    attempts, children, most_each = 400, 8, 4
    ledger.migrated({f"job-{number:03}": handed(at_once()) for number in range(attempts)})
    connect(ledger, redis)
    most, encrypted_sessions = 0, 0

    def all_have_ended() -> bool:
        nonlocal most, encrypted_sessions
        most = max(most, ledger.sessions())
        encrypted_sessions = max(encrypted_sessions, ledger.encrypted_sessions())
        ((count,),) = ledger.query("SELECT count(*) FROM scheduler_runlog WHERE finished_at IS NOT NULL")
        return bool(count >= attempts)

    with run_scheduler(ledger) as server, worker(ledger, size=children) as one:
        wait_until(all_have_ended, 150, "all have ended")
        assert one.stop(seconds=120) == 0  # Celery closes the pool of each child, which may take 5 s for each
        assert server.stop(seconds=30) == 0
        said = one.output() + server.output()
    assert Counter(row.status for row in ledger.rows()) == {"succeeded": attempts}
    assert [word for word in SPEAKS_OF_SHARING if word in said] == []
    assert "Traceback" not in said
    assert most <= (children + 2) * most_each + 1, "each process has its own, and no more"
    assert (encrypted_sessions > children) == (options == TLS)
    wait_until(lambda: ledger.sessions() == 0, 10, "no session is left")
    ledger.check_once()
    ledger.check_clean_stop()


@pytest.mark.postgresql
def test_runs_outlive_a_restart_of_their_database_Y9(tmp_path: Path, redis: Redis, postgresql: Server) -> None:
    ledger = OnAServer(tmp_path, postgresql, "postgresql")
    ledger.migrated({name: handed(at_once(), seconds=10.0) for name in ("one", "two")})
    connect(ledger, redis)
    with run_scheduler(ledger) as server, worker(ledger, size=2) as one:
        wait_until(lambda: len(ledger.starts()) == 2, 60, "both run")
        postgresql.stop()
        began = now()
        wait_until(lambda: now() - began > timedelta(seconds=6), 10, "it is away for a while")
        postgresql.start()
        wait_until(lambda: {row.status for row in ledger.rows()} == {"succeeded"}, 60, "both have succeeded")
        assert one.stop(seconds=30) == 0
        assert server.stop(seconds=30) == 0
    assert [(row.attempt, row.token) for row in ledger.rows()] == [(1, 1)] * 2
    ledger.check_once()
    ledger.check_clean_stop()


@pytest.mark.postgresql
def test_workers_go_on_when_each_session_is_ended_fifty_times_Y9(
    tmp_path: Path, redis: Redis, postgresql: Server
) -> None:
    names = [f"job-{number}" for number in range(4)]
    ledger = OnAServer(tmp_path, postgresql, "postgresql")
    ledger.migrated({name: handed("every 0.5s", breaker_threshold=None) for name in names})
    connect(ledger, redis)
    with run_scheduler(ledger) as server, worker(ledger, size=2) as one:
        wait_until(lambda: len(ledger.starts()) > 4, 60, "they run")
        for number in range(50):
            before = len(ledger.lines())
            ledger.query("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()")
            if number % 5 == 0:
                wait_until(lambda before=before: len(ledger.lines()) > before, 60, "they go on")  # type: ignore[misc]
        after = len(ledger.starts())
        wait_until(lambda: len(ledger.starts()) > after + 8, 60, "all go on")
        assert one.stop(seconds=30) == 0
        assert server.stop(seconds=30) == 0
    ledger.check_clean_stop()
    assert Counter(line.key for line in ledger.starts()).most_common(1)[0][1] == 1, "no attempt has run twice"


@pytest.mark.mariadb
def test_a_worker_whose_idle_connection_was_closed_claims_all_the_same_Y9(
    tmp_path: Path, redis: Redis, mariadb: Server
) -> None:
    """MariaDB closes what was idle for 3 s; the worker has nothing to do for 8."""
    ledger = OnAServer(tmp_path, mariadb, "mariadb", init_command="SET SESSION wait_timeout=3")
    ledger.migrated({"idle": handed("every 8s")})
    connect(ledger, redis)
    with run_scheduler(ledger) as server, worker(ledger, size=1) as one:
        wait_until(lambda: len(ledger.starts()) >= 3, 90, "three slots")
        wait_until(lambda: ledger.rows()[2].status == "succeeded", 10 + noise(), "the third one has succeeded")
        assert one.stop(seconds=30) == 0
        assert server.stop(seconds=30) == 0
        assert "Traceback" not in one.output()
    assert {row.status for row in ledger.rows()[:3]} == {"succeeded"}
    assert {row.attempt for row in ledger.rows()} == {1}
    ledger.check_once()
