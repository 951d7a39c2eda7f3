"""What the acceptance tests see from outside: the journal that the tasks wrote, and the rows of the database."""

import json
import os
import sqlite3
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from .servers import ROOT, START_SECONDS, ServerProcess, environment, kill_group, start_server

PROJECT = Path(__file__).parent / "ledger_project"
SETTINGS = "ledger.settings"
CLOCK_SLEW = 0.002
"""The wall clock may be slewed between the plan of a start and the start."""
JOURNALED = {"succeeded", "failed", "timed_out"}


class Slot(NamedTuple):
    """One attempt of one slot."""

    job: str
    slot: datetime
    attempt: int


class Row(NamedTuple):
    """A row of the ledger."""

    job: str
    slot: datetime
    attempt: int
    status: str
    trigger: str
    coalesced: int
    coalesced_from: datetime | None
    started_at: datetime | None
    token: int
    reason: str

    @property
    def key(self) -> Slot:
        return Slot(self.job, self.slot, self.attempt)


@dataclass(frozen=True)
class Line:
    """A line of the journal."""

    event: str
    pid: int
    job: str
    slot: datetime
    attempt: int
    token: int
    at: float
    fence: int | None = None

    @property
    def key(self) -> Slot:
        return Slot(self.job, self.slot, self.attempt)


class Ledger:
    """The folder of a test: its database and its journal, and what must hold between them."""

    def __init__(self, folder: Path, tasks: Mapping[str, Mapping[str, Any]] | None = None) -> None:
        self.folder = folder
        self.database = folder / "ledger.sqlite3"
        self.env = {"LEDGER_FOLDER": str(folder)}
        self.give(tasks or {})

    def give(self, tasks: Mapping[str, Mapping[str, Any]]) -> None:
        """Let processes that start from now on register these tasks."""
        self.tasks = {name: dict(options) for name, options in tasks.items()}
        self.env["LEDGER_TASKS"] = json.dumps(self.tasks)

    # What the processes have written.

    def lines(self, *events: str, job: str = "") -> list[Line]:
        """Return complete lines of the journal, oldest first."""
        path = self.folder / "journal.jsonl"
        text = path.read_text() if path.exists() else ""
        found = [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]
        lines = [Line(**{**line, "slot": datetime.fromisoformat(line["slot"])}) for line in found]
        return [line for line in lines if line.event in (events or ("start", "end")) and job in ("", line.job)]

    def starts(self, job: str = "") -> list[Line]:
        return self.lines("start", job=job)

    def query(self, sql: str, *parameters: Any) -> list[tuple[Any, ...]]:
        """Return rows of the database, read past the ORM."""
        with closing(sqlite3.connect(self.database, timeout=20)) as connection:
            rows = connection.execute(sql, parameters).fetchall()
            connection.commit()
            return rows

    def rows(self, job: str = "") -> list[Row]:
        """Return the ledger, oldest slot first."""
        found = self.query(
            "SELECT j.name, scheduled_for, attempt, status, r.trigger, coalesced, coalesced_from, started_at, r.token,"
            " reason FROM scheduler_runlog r JOIN scheduler_job j ON j.id = job_id ORDER BY 1, 2, 3"
        )
        rows = [
            Row(*(instant(value) if index in (1, 6, 7) else value for index, value in enumerate(row))) for row in found
        ]
        return [row for row in rows if job in ("", row.job)]

    def job(self, name: str) -> dict[str, Any]:
        """Return the columns of a job."""
        with closing(sqlite3.connect(self.database, timeout=20)) as connection:
            connection.row_factory = sqlite3.Row
            return dict(connection.execute("SELECT * FROM scheduler_job WHERE name = ?", [name]).fetchone())

    def instances(self) -> int:
        return int(self.query("SELECT count(*) FROM scheduler_instance")[0][0])

    def dump(self) -> list[str]:
        """Return everything in the database as SQL."""
        with closing(sqlite3.connect(self.database, timeout=20)) as connection:
            return list(connection.iterdump())

    # What must hold.

    def check_clean_stop(self) -> None:
        """I18: nothing is held after a clean stop."""
        assert [row for row in self.rows() if row.status == "running"] == []
        assert self.instances() == 0

    def check_once(self) -> None:
        """I1, I4, I19: one row and one start for each attempt, none before its slot; journal and rows agree."""
        rows = {row.key: row for row in self.rows()}
        assert len(rows) == len(self.rows())
        starts, ends = (Counter(line.key for line in self.lines(event)) for event in ("start", "end"))
        assert [key for key, count in (starts + ends).items() if count > 2 or starts[key] > 1] == []
        assert starts.keys() <= rows.keys(), "started without a row"
        finished = {key for key, row in rows.items() if row.status in JOURNALED}
        assert finished <= starts.keys(), "a row without a start"
        assert finished <= ends.keys(), "a row without an end"
        assert [line for line in self.starts() if line.at + CLOCK_SLEW < line.slot.timestamp()] == []
        assert all(rows[line.key].token == line.token for line in self.starts())

    def check_one_at_a_time(self, *, killed: Iterable[int] = ()) -> None:
        """I2: no two runs of one job at the same time, by the journal; runs of killed processes ended with them."""
        dead = set(killed)
        going: dict[str, set[Slot]] = defaultdict(set)
        for line in sorted(self.lines(), key=lambda line: line.at):
            if line.pid not in dead:
                (going[line.job].add if line.event == "start" else going[line.job].discard)(line.key)
                assert len(going[line.job]) <= 1, going[line.job]

    def has_decided(self, names: Iterable[str], until: datetime) -> bool:
        """Return whether each job has a row of a slot after an instant: all slots before it have been decided."""
        return {row.job for row in self.rows() if row.attempt == 1 and row.slot > until} >= {*names}

    def check_no_slot_missing(self, intervals: Mapping[str, float], until: datetime) -> None:
        """I3: every slot of every `Every` job up to `until` is decided by exactly one row."""
        for job, seconds in intervals.items():
            step = timedelta(seconds=seconds)
            anchor = instant(self.job(job)["anchor_at"])
            assert anchor is not None
            covered = sorted(slot for row in self.rows(job) if row.attempt == 1 for slot in slots_of(row, step))
            assert covered, job
            assert covered[0] == anchor + step, f"{job}: the first slot is missing"
            assert [(a, b) for a, b in pairwise(covered) if b - a != step] == [], job
            assert covered[-1] > until - step, f"{job}: the last slots are missing"


def instant(value: str | datetime | None) -> datetime | None:
    """Return an instant as SQLite keeps it, or as a driver has read it."""
    if value is None:
        return None
    return (value if isinstance(value, datetime) else datetime.fromisoformat(value)).replace(tzinfo=UTC)


def slots_of(row: Row, step: timedelta) -> list[datetime]:
    """Return every slot that a row stands for."""
    return [row.slot - index * step for index in range(row.coalesced + 1)]


def noise() -> float:
    """Return the seconds that a test allows a promise to be late by: more on a machine that is busy with other work."""
    return 1.0 + os.getloadavg()[0] / (os.cpu_count() or 1)


def now() -> datetime:
    return datetime.now(UTC)  # noqa: TID251


def manage(ledger: Ledger, *arguments: str, seconds: float = 60) -> "subprocess.CompletedProcess[str]":
    """Run a command of the project to its end."""
    return subprocess.run(
        [sys.executable, "manage.py", *arguments], cwd=PROJECT, env=environment(PROJECT, SETTINGS, ledger.env),
        capture_output=True, text=True, timeout=seconds, check=False,
    )  # fmt: skip


@contextmanager
def serve(ledger: Ledger, kind: str, *args: str, workers: int = 1) -> Iterator[ServerProcess]:
    """Run a server, or `run_scheduler`, of the project; see `start_server`."""
    if kind == "run_scheduler":
        with run_scheduler(ledger) as server:
            yield server
    else:
        with start_server(kind, PROJECT, SETTINGS, *args, env=ledger.env, workers=workers) as server:
            # It has begun to serve then: a signal before that ends some servers with a traceback.
            server.get("/", START_SECONDS)
            yield server


@contextmanager
def run_scheduler(ledger: Ledger, *program: str) -> Iterator[ServerProcess]:
    """Run `manage.py run_scheduler`, or another program of the project, until the block ends."""
    environ = environment(PROJECT, SETTINGS, ledger.env)
    with tempfile.TemporaryDirectory(prefix="scheduler-") as folder:
        log = Path(folder) / "output.txt"
        with log.open("wb") as output:
            process = subprocess.Popen(
                [sys.executable, *(program or ("manage.py", "run_scheduler"))], cwd=PROJECT, env=environ,
                stdout=output, stderr=output, start_new_session=True,
            )  # fmt: skip
        server = ServerProcess("run_scheduler", process, 0, log, environ)
        try:
            yield server
        except BaseException:
            print(f"--- run_scheduler\n{server.output()}\n---")
            raise
        finally:
            kill_group(process)


def complains(server: ServerProcess) -> bool:
    """Return whether the server printed a traceback from our code; its own ones are not ours to judge."""
    return f'File "{ROOT / "scheduler"}' in server.output() or "cannot schedule new futures" in server.output()


def is_alive(pid: int) -> bool:
    """Return whether a process runs."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
