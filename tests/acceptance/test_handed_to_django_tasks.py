"""Jobs that are handed over to real workers of Django Tasks: of the database, and of RQ."""

import json
import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import django
import pytest

from tests.redis_server import PROGRAM, RedisServer

from .ledger import PROJECT, SETTINGS, Ledger, manage, now, run_scheduler
from .servers import ServerProcess, children_of, environment, kill_group, wait_until

pytestmark = [pytest.mark.acceptance, pytest.mark.timeout(500)]
LedgerOf = Callable[[dict[str, dict[str, Any]]], Ledger]
Engine = tuple[Callable[[Ledger], None], tuple[str, ...], Callable[[Ledger], Any]]
FRAMEWORK = [] if django.VERSION >= (6,) else ["django_tasks"]
OFTEN = {"often": {"schedule": "every 1s", "executor": "django_tasks", "seconds": 0.5, "handover_timeout": "10s"}}
DB_WORKER = ("db_worker", "--interval", "0.1", "--no-startup-delay", "--no-reload")


def connect(ledger: Ledger, app: str, backend: str, **more: Any) -> None:
    """Have processes of the project that start from now on use a backend."""
    backends = {"default": {"BACKEND": backend}}
    ledger.env |= {"LEDGER_TASKS_APPS": " ".join([*FRAMEWORK, app]), "LEDGER_TASKS_BACKENDS": json.dumps(backends)}
    ledger.env |= {"LEDGER_RQ_QUEUES": json.dumps(more)}
    done = manage(ledger, "migrate", seconds=180)
    assert done.returncode == 0, done.stderr


@contextmanager
def worker(ledger: Ledger, *command: str) -> Iterator[ServerProcess]:
    log = ledger.folder / f"worker-{uuid.uuid4().hex[:6]}.txt"
    environ = environment(PROJECT, SETTINGS, ledger.env)
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "manage.py", *command], cwd=PROJECT, env=environ, stdout=output, stderr=output,
            start_new_session=True,
        )  # fmt: skip
    one = ServerProcess("worker", process, 0, log, environ)
    try:
        yield one
    except BaseException:
        print(f"--- {' '.join(command)}\n{one.output()[-6000:]}\n---")
        raise
    finally:
        horses = children_of(process.pid)  # those of RQ are groups of their own
        kill_group(process)
        for pid in horses:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def ended(ledger: Ledger, status: str = "succeeded") -> int:
    return sum(row.status == status for row in ledger.rows())


@pytest.fixture(params=["db", "rq"])
def engine(request: pytest.FixtureRequest) -> Engine:
    """Return what connects a ledger to an engine, the command of its workers, and what purges its queue."""
    if request.param == "db":
        pytest.importorskip("django_tasks_db", reason="django-tasks-db is not installed")
        return (
            lambda ledger: connect(ledger, "django_tasks_db", "django_tasks_db.DatabaseBackend"),
            DB_WORKER,
            lambda ledger: ledger.query("DELETE FROM django_tasks_database_dbtaskresult WHERE status = 'READY'"),
        )
    for package in ("rq", "django_rq"):
        pytest.importorskip(package, reason=f"{package} is not installed")
    server: RedisServer = request.getfixturevalue("redis_server")
    queue = {"URL": server.url}
    return (
        lambda ledger: connect(ledger, "django_rq", "django_tasks_rq.RQBackend", default=queue),
        ("rqworker", "default", "--job-class", "django_tasks_rq.Job"),
        lambda ledger: server.client.delete("rq:queue:default"),
    )


SLOTS, KILLS = 300, 3


def slots(ledger: Ledger) -> int:
    """Return how many slots are decided, those included that stand on the row of a later one."""
    return sum(1 + row.coalesced for row in ledger.rows() if row.attempt == 1)


def is_running(ledger: Ledger, job: str) -> bool:
    return any(row.status == "running" for row in ledger.rows(job))


def test_slots_run_once_and_those_of_killed_workers_in_the_next_though_messages_come_twice_or_never_I1_I3_I7(
    ledger_of: LedgerOf, engine: Engine
) -> None:
    """300 slots; each message is published twice, three workers are killed, the queue is purged while none is there."""
    connects, command, purge = engine
    names = [f"job-{number}" for number in range(8)]
    ledger = ledger_of({**OFTEN, **{name: {**OFTEN["often"], "seconds": 0.01} for name in names}})
    connects(ledger)
    ledger.env |= {"LEDGER_HEARTBEAT": "0.5", "LEDGER_TTL": "3", "LEDGER_TWICE": "1"}
    with run_scheduler(ledger) as server:
        for kill in range(1, KILLS + 1):
            with worker(ledger, *command):
                wait_until(lambda: slots(ledger) >= SLOTS * kill // (KILLS + 1) and is_running(ledger, "often"), 180)  # noqa: B023
            # it was killed, with a run unless that has just ended
        wait_until(lambda: ended(ledger, "pending"), 120, "what it left, or the next slot, is handed over")
        purge(ledger)
        purged = now()
        with worker(ledger, *command):
            wait_until(lambda: ended(ledger, "lost"), 120, "their deaths are found")
            wait_until(lambda: slots(ledger) >= SLOTS, 180, "the next worker goes on")
            wait_until(lambda: ledger.has_decided([*OFTEN, *names], purged), 120, "all slots from before are decided")
            assert server.stop(seconds=60) == 0
    assert not {line.pid for line in ledger.starts()} & {server.pid}
    ledger.check_once()
    ledger.check_no_slot_missing(dict.fromkeys([*OFTEN, *names], 1.0), purged)
    again = {(row.job, row.slot) for row in ledger.rows() if row.attempt > 1}
    lost = {(row.job, row.slot) for row in ledger.rows() if row.status == "lost"}
    assert lost <= again, "what they had begun is begun again"


Outage = tuple[Callable[[Ledger], None], tuple[str, ...], Callable[[Ledger], Any], Callable[[Ledger], Any]]
MESSAGES = "django_tasks_database_dbtaskresult"


@pytest.fixture(params=["db", "rq"])
def outage(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Outage]:
    """Yield what connects a ledger to an engine, the command of its workers, and what takes it away and back."""
    if request.param == "db":
        pytest.importorskip("django_tasks_db", reason="django-tasks-db is not installed")
        yield (
            lambda ledger: connect(ledger, "django_tasks_db", "django_tasks_db.DatabaseBackend"),
            DB_WORKER,
            lambda ledger: ledger.query(f"ALTER TABLE {MESSAGES} RENAME TO away"),
            lambda ledger: ledger.query(f"ALTER TABLE away RENAME TO {MESSAGES}"),
        )
        return
    for package in ("rq", "django_rq"):
        pytest.importorskip(package, reason=f"{package} is not installed")
    if PROGRAM is None:
        pytest.skip("redis-server is not installed")
    server = RedisServer(tmp_path, remembers=True)
    server.start()
    yield (
        lambda ledger: connect(ledger, "django_rq", "django_tasks_rq.RQBackend", default={"URL": server.url}),
        ("rqworker", "default", "--job-class", "django_tasks_rq.Job"),
        lambda ledger: server.stop(),
        lambda ledger: server.start(),
    )
    server.stop()


ROLLED_BACK = """
from django.db import transaction
from scheduler import run_now
try:
    with transaction.atomic():
        run_now("by hand")
        1 / 0
except ZeroDivisionError:
    print("rolled back")
"""


def test_an_engine_that_is_away_for_a_while_loses_no_slot_and_a_rollback_hands_nothing_over_I1_I3(
    ledger_of: LedgerOf, outage: Outage
) -> None:
    connects, command, away, back = outage
    ledger = ledger_of({**OFTEN, "by hand": {**OFTEN["often"], "schedule": "manual"}})
    connects(ledger)
    with run_scheduler(ledger) as server:
        with worker(ledger, *command):
            wait_until(lambda: ended(ledger) >= 2, 120, "runs before")
        away(ledger)
        wait_until(lambda: "handover failed" in server.output(), 120, "the failed enqueue is told")
        assert ended(ledger, "pending"), "its slot waits"
        assert "rolled back" in manage(ledger, "shell", "--no-imports", "-c", ROLLED_BACK).stdout
        back(ledger)
        again, done = now(), ended(ledger)
        with worker(ledger, *command):
            wait_until(lambda: ended(ledger) >= done + 3, 120, "it goes on by itself")
            wait_until(lambda: ledger.has_decided(["often"], again), 120, "all slots from before are decided")
            assert server.stop(seconds=60) == 0
    assert not {line.pid for line in ledger.starts()} & {server.pid}
    assert ledger.rows("by hand") == []
    ledger.check_once()
    ledger.check_no_slot_missing({"often": 1.0}, again)


def test_a_worker_that_is_stopped_asks_its_run_to_stop_for_the_next_one(ledger_of: LedgerOf) -> None:
    pytest.importorskip("django_tasks_db", reason="django-tasks-db is not installed")
    ledger = ledger_of({"long": {**OFTEN["often"], "schedule": "every 2s", "seconds": 60, "kind": "patient"}})
    connect(ledger, "django_tasks_db", "django_tasks_db.DatabaseBackend")
    with run_scheduler(ledger):
        with worker(ledger, *DB_WORKER) as one:
            wait_until(lambda: ledger.starts(), 60, "it runs")
            assert one.stop() == 0
        assert len(ledger.lines("stopped")) == 1
        first = ledger.rows()[0]
        assert (first.status, first.reason) == ("lost", "its process was stopped")
        with worker(ledger, *DB_WORKER):
            wait_until(lambda: len(ledger.starts()) == 2, 60, "the next worker begins it again")
    assert [line.key.attempt for line in ledger.starts()] == [1, 2]
