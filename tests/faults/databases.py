"""The databases under test: made for one run of the suite, read past the ORM, harmed, and dropped."""

import json
import secrets
import sqlite3
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

from tests.faults.evidence import Entry, JobRow, Row, Sample, instant
from tests.faults.servers import Server
from tests.faults.timing import mono, pause, wall

ROOT = Path(__file__).resolve().parents[2]
PROJECT = Path(__file__).resolve().parent / "project"
TABLES = ("scheduler_runlog", "scheduler_job", "scheduler_instance", "scheduler_group", "scheduler_environment")
TABLES += ("scheduler_activity", "scheduler_jobevent")
LOCKED = ("scheduler_job", "scheduler_runlog")
RUNS = """SELECT r.id, j.name AS job, r.scheduled_for AS slot, r.attempt, r.trigger AS trigger_, r.status, r.token,
 r.instance_id AS instance, r.due_at, r.started_at, r.finished_at, r.coalesced, r.coalesced_from, r.reason, r.note,
 r.checkpoint IS NOT NULL AS saved FROM scheduler_runlog r JOIN scheduler_job j ON j.id = r.job_id ORDER BY r.id"""
JOBS = """SELECT name, anchor_at, next_run_at, wake_at, stale, token, active_runs, successes, failures, timeouts,
 losses, cancellations, skips, misses, state, orphaned_at, problem, broken_at, consecutive_failures
 FROM scheduler_job ORDER BY name"""
ENTRIES = "SELECT user_key, state, slot, events, taken_events FROM scheduler_activity"
BEATS = "SELECT id, heartbeat_at FROM scheduler_instance"
NEWEST_SLOT = """SELECT max(r.scheduled_for) AS slot FROM scheduler_runlog r JOIN scheduler_job j ON j.id = r.job_id
 WHERE j.name = %s AND r.attempt = 1"""
SET_BACK = """UPDATE scheduler_job SET next_run_at = %s, wake_at = %s, last_slot = NULL, version = version + 1
 WHERE name = %s AND active_runs = 0 AND wake_at IS NOT NULL"""
LEFT_OPEN = "left open%"
BALLAST = "faults_ballast"
INSTANTS = {"slot", "due_at", "started_at", "finished_at", "coalesced_from", "anchor_at", "next_run_at"}
INSTANTS |= {"wake_at", "orphaned_at", "broken_at"}
TURN_TO_WRITE = 120.0
"""Seconds that a fault waits to write to a file, which a crowd of writers may keep to itself on a busy machine."""
BACK_AGAIN = 30.0
"""Seconds that the controller itself waits for a server that is away."""

Rows = list[dict[str, Any]]
T = TypeVar("T")


class Database:
    """One database of one kind. `port` is where its server listens; 0 for a file."""

    kind = ""
    port = 0
    place = "%s"
    """How a parameter is written in a statement."""
    snapshot = "BEGIN"
    """Begins a transaction all of whose questions are answered as of one moment."""

    def __init__(self, server: Server | None = None) -> None:
        self.name = f"faults_{secrets.token_hex(4)}"
        self.server = server
        """Ours alone, so that it may be restarted; None: one that others use too, on the usual port."""
        self.port = server.port if server else self.port

    def url(self, port: int) -> str:
        """Return DATABASE_URL for a runner that connects through `port`."""
        raise NotImplementedError

    def connect(self) -> Any:
        """Return a connection that commits by itself."""
        raise NotImplementedError

    def create(self) -> None:
        raise NotImplementedError

    def drop(self) -> None:
        raise NotImplementedError

    def kill_sessions(self) -> int:
        """End every session on the database but ours; returns how many."""
        return 0

    def hold_lock(self, seconds: float) -> float:
        """Keep everybody from writing for so long; return for how long it was."""
        raise NotImplementedError

    def is_away(self, error: Exception) -> bool:
        """Return whether an error says that the server has gone away, or ended our session."""
        return False

    def query(self, sql: str, *parameters: Any) -> Rows:
        """Return rows as dicts; again when the server was away, so the statement must bear to be repeated."""

        def query() -> Rows:
            with closing(self.connect()) as connection:
                return _fetched(connection.cursor(), sql, *parameters)

        return self._retried(query)

    def change(self, sql: str, *parameters: Any) -> int:
        """Return how many rows a statement changed."""

        def change() -> int:
            with closing(self.connect()) as connection:
                cursor = connection.cursor()
                cursor.execute(sql, parameters)
                return int(cursor.rowcount)

        return self._retried(change)

    def _retried(self, read: Callable[[], T]) -> T:
        until = mono() + BACK_AGAIN
        while True:
            try:
                return read()
            except Exception as error:
                if not self.is_away(error) or mono() > until:
                    raise
            pause(0.2)

    def clear(self) -> None:
        """Empty our tables."""
        for table in TABLES:
            self.query(f"DELETE FROM {table}")

    def set_plan_back(self, name: str) -> bool:
        """Plan a job for its newest slot once more, as an old backup would; return whether it was."""
        (newest,) = self.query(NEWEST_SLOT.replace("%s", self.place), name)
        if newest["slot"] is None:
            return False
        return bool(self.change(SET_BACK.replace("%s", self.place), newest["slot"], newest["slot"], name))

    def instances_of(self, pid: int) -> set[str]:
        """Return the instances that a process is in the database; one that is clean has at most one."""
        rows = self.query(f"SELECT id FROM scheduler_instance WHERE pid = {self.place}", pid)
        return {_hex(row["id"]) for row in rows}

    def left_open(self) -> list[str]:
        """Return what tasks wrote in transactions that they left open."""
        rows = self.query(f"SELECT name FROM scheduler_group WHERE name LIKE {self.place}", LEFT_OPEN)
        return [row["name"] for row in rows]

    def sample(self) -> Sample:
        """Read jobs, ledger and instances as they were at one moment."""
        jobs, runs, beats, entries = self._retried(self._snapshot)
        instances = {_hex(one["id"]): _seconds(one["heartbeat_at"]) for one in beats}
        return Sample(
            mono=mono(), wall=wall(), rows=[_row(run) for run in runs], jobs=[_job(job) for job in jobs],
            instances=instances, entries=[Entry(**_read(entry)) for entry in entries],
        )  # fmt: skip

    def _snapshot(self) -> list[Rows]:
        with closing(self.connect()) as connection:
            cursor = connection.cursor()
            cursor.execute(self.snapshot)
            return [_fetched(cursor, question) for question in (JOBS, RUNS, BEATS, ENTRIES)]


class Sqlite(Database):
    kind = "sqlite"
    place = "?"

    def __init__(self, server: Server | None = None) -> None:
        super().__init__()
        self._folder = tempfile.TemporaryDirectory(prefix="faults-")
        self.path = Path(self._folder.name) / "db.sqlite3"

    def url(self, port: int) -> str:
        return f"sqlite:///{self.path}"

    def connect(self) -> Any:
        return sqlite3.connect(self.path, timeout=TURN_TO_WRITE, isolation_level=None)

    def create(self) -> None:
        self.path.touch()

    def drop(self) -> None:
        self._folder.cleanup()

    def clear(self) -> None:
        """Make the file what it was after `migrate`: its journal mode and its free pages are part of it, too."""
        self.query("PRAGMA journal_mode=DELETE")
        self.query(f"DROP TABLE IF EXISTS {BALLAST}")
        super().clear()
        self.query("VACUUM")

    def fill(self, size: int) -> None:
        """Make the file at least so large, with nothing that could be written over: so it can only grow."""
        lacking = size - self.path.stat().st_size
        self.query(f"CREATE TABLE IF NOT EXISTS {BALLAST} (content BLOB)")
        self.query(f"INSERT INTO {BALLAST} VALUES (zeroblob(?))", max(0, lacking))

    def hold_lock(self, seconds: float) -> float:
        with closing(self.connect()) as connection:
            connection.execute("BEGIN IMMEDIATE")
            held = _paused(seconds)
            connection.execute("ROLLBACK")
        return held


class Postgresql(Database):
    kind = "postgresql"
    snapshot = "BEGIN ISOLATION LEVEL REPEATABLE READ"
    port = 5432

    def url(self, port: int) -> str:
        return f"postgresql://postgres@127.0.0.1:{port}/{self.name}"

    def connect(self, name: str = "") -> Any:
        import psycopg

        return psycopg.connect(
            host="127.0.0.1", port=self.port, user="postgres", dbname=name or self.name, autocommit=True,
            connect_timeout=5, application_name="faults controller",
        )  # fmt: skip

    def is_away(self, error: Exception) -> bool:
        import psycopg

        return isinstance(error, psycopg.OperationalError | psycopg.InterfaceError)

    def create(self) -> None:
        with closing(self.connect("postgres")) as connection:
            connection.execute(f"CREATE DATABASE {self.name}")

    def drop(self) -> None:
        with closing(self.connect("postgres")) as connection:
            connection.execute(f"DROP DATABASE IF EXISTS {self.name} WITH (FORCE)")

    def kill_sessions(self) -> int:
        ours = "datname = %s AND application_name <> 'faults controller' AND pid <> pg_backend_pid()"
        return len(self.query(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {ours}", self.name))

    def sessions(self) -> int:
        """Return how many sessions others have on the database."""
        ours = "datname = %s AND application_name <> 'faults controller' AND pid <> pg_backend_pid()"
        return int(self.query(f"SELECT count(*) AS n FROM pg_stat_activity WHERE {ours}", self.name)[0]["n"])

    def hold_lock(self, seconds: float) -> float:
        with closing(self.connect()) as connection:
            connection.execute("BEGIN")
            connection.execute(f"LOCK TABLE {', '.join(LOCKED)} IN ACCESS EXCLUSIVE MODE")
            held = _paused(seconds)
            connection.execute("ROLLBACK")
        return held


class Mariadb(Database):
    kind = "mariadb"
    snapshot = "START TRANSACTION WITH CONSISTENT SNAPSHOT"
    port = 3306

    def url(self, port: int) -> str:
        return f"mysql://root@127.0.0.1:{port}/{self.name}"

    def connect(self, name: str | None = None) -> Any:
        import MySQLdb

        return MySQLdb.connect(
            host="127.0.0.1", port=self.port, user="root", database=self.name if name is None else name,
            autocommit=True, charset="utf8mb4", connect_timeout=5,
        )  # fmt: skip

    def is_away(self, error: Exception) -> bool:
        import MySQLdb

        return isinstance(error, MySQLdb.OperationalError | MySQLdb.InterfaceError)

    def create(self) -> None:
        with closing(self.connect("")) as connection:
            connection.cursor().execute(f"CREATE DATABASE {self.name} CHARACTER SET utf8mb4")

    def drop(self) -> None:
        with closing(self.connect("")) as connection:
            connection.cursor().execute(f"DROP DATABASE IF EXISTS {self.name}")

    def kill_sessions(self) -> int:
        sessions = self.query(
            "SELECT id FROM information_schema.processlist WHERE db = %s AND id <> connection_id()", self.name
        )
        killed = 0
        for session in sessions:
            with suppress(Exception):  # it may have ended by itself
                self.query(f"KILL {int(session['id'])}")
                killed += 1
        return killed

    def hold_lock(self, seconds: float) -> float:
        with closing(self.connect()) as connection:
            connection.cursor().execute(f"LOCK TABLES {', '.join(f'{table} WRITE' for table in LOCKED)}")
            held = _paused(seconds)
            connection.cursor().execute("UNLOCK TABLES")
        return held


KINDS: dict[str, type[Database]] = {kind.kind: kind for kind in (Sqlite, Postgresql, Mariadb)}


def answers(kind: str) -> bool:
    """Return whether the server of this kind can be used here."""
    if kind == "sqlite":
        return True
    server = KINDS[kind]()
    try:
        server.connect("postgres" if kind == "postgresql" else "").close()  # type: ignore[call-arg]
    except Exception:  # no driver, no server: the caller only wants to know
        return False
    return True


@contextmanager
def fresh(kind: str, server: Server | None = None, mutant: str = "") -> Iterator[Database]:
    """A migrated database of this kind, dropped at the end; on the server that is there unless one is given."""
    database = KINDS[kind](server)
    database.create()
    try:
        migrate(database, mutant)
        yield database
    finally:
        database.drop()


def migrate(database: Database, mutant: str) -> None:
    """Create our tables, by the project's own command."""
    from tests.faults.processes import environment

    with tempfile.TemporaryDirectory(prefix="faults-") as folder:
        options = {"order": {"steady": False}, "mutant": mutant}
        env = environment(Path(folder), database.url(database.port), 0, options)
        command = [sys.executable, "manage.py", "migrate", "--verbosity", "0"]
        subprocess.run(command, cwd=PROJECT, env=env, check=True, timeout=120)


def in_background(database: Database, seconds: float) -> threading.Thread:
    """Hold the lock in a thread, so that the round goes on. It is let go when the server ends the session."""

    def hold() -> None:
        with suppress(Exception):
            database.hold_lock(seconds)

    thread = threading.Thread(target=hold, daemon=True)
    thread.start()
    return thread


def _paused(seconds: float) -> float:
    began = mono()
    pause(seconds)
    return mono() - began


def _fetched(cursor: Any, sql: str, *parameters: Any) -> Rows:
    cursor.execute(sql, parameters)
    if cursor.description is None:
        return []
    names = [column[0] for column in cursor.description]
    return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


def _row(values: dict[str, Any]) -> Row:
    values = _read(values)
    return Row(**{**values, "trigger": values["trigger"], "instance": _hex(values["instance"])})


def _job(values: dict[str, Any]) -> JobRow:
    values = _read(values)
    state = values["state"]
    return JobRow(**{**values, "state": json.loads(state) if isinstance(state, str) else state})


def _read(values: dict[str, Any]) -> dict[str, Any]:
    named = {name.rstrip("_"): value for name, value in values.items()}
    return {name: instant(value) if name in INSTANTS else value for name, value in named.items()}


def _hex(value: Any) -> str:
    return "" if value is None else str(value).replace("-", "")


def _seconds(value: Any) -> float:
    at = instant(value)
    return at.timestamp() if at else 0.0
